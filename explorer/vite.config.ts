import { defineConfig } from "vite";
import { compress, licences } from "./build-plugins";

/** The address of a running `lore up`, for `npm run dev`. */
const server = process.env.LORE_ADDRESS ?? "http://127.0.0.1:7471";

export default defineConfig({
  build: {
    outDir: "../src/lore/data/explorer",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the server allows no data: scripts, and small files cost nothing on loopback.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  plugins: [licences(), compress()],
  server: {
    proxy: {
      // The server accepts its own Host and Origin only.
      "/api": { target: server, changeOrigin: true, headers: { origin: server } },
      "/login": { target: server, changeOrigin: true },
    },
  },
});
