/** What the build adds to the bundle: compressed copies and the licences of what is in it. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const COMPRESSED = /\.(js|css|html|svg|txt)$/;

/** Write .br and .gz beside each text file, so that the server compresses nothing. */
export function compress(): Plugin {
  let folder = "";
  return {
    name: "compress",
    apply: "build",
    configResolved(config) {
      folder = join(config.root, config.build.outDir);
    },
    closeBundle() {
      for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
        if (!COMPRESSED.test(name)) continue;
        const path = join(folder, name);
        const body = readFileSync(path);
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
        writeFileSync(`${path}.br`, brotliCompressSync(body, { params }));
        writeFileSync(`${path}.gz`, gzipSync(body, { level: 9 }));
      }
    },
  };
}

/** Emit LICENSES.txt with the licence of every package that is bundled. */
export function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const folders = new Set<string>();
      for (const id of this.getModuleIds()) {
        const match = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.replace("\0", ""));
        if (match && existsSync(join(match[0], "package.json"))) folders.add(match[0]);
      }
      const texts = [...folders].sort().map(licenceOf);
      this.emitFile({ type: "asset", fileName: "LICENSES.txt", source: texts.join("\n\n") });
    },
  };
}

function licenceOf(folder: string): string {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, string>;
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (!file) throw new Error(`${about.name} has no licence file in ${dirname(folder)}`);
  return `${about.name} ${about.version} (${about.license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}
