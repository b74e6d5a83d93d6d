import { defineConfig } from "vite";
import { compress, licences } from "./build-plugins.ts";

/** The address of a running `lore up`, for `npm run dev`. */
const server = process.env.LORE_ADDRESS ?? "http://127.0.0.1:3207";

/** The policy of the server, so that a preview meets it too. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

/** The server accepts its own Host and Origin only. */
const proxy = {
  "/api": { target: server, changeOrigin: true, headers: { origin: server } },
  "/login": { target: server, changeOrigin: true },
};

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
  server: { proxy },
  preview: { proxy, headers: { "content-security-policy": POLICY } },
});
