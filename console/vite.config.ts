import { defineConfig } from "vitest/config";

// Addresses are relative, so that the console also works behind a proxy's path. Nothing is inlined:
// the server's content policy allows neither inline scripts and styles nor data addresses.
export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    outDir: "../headrace/console/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    target: "es2022",
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8080" } },
  test: { include: ["tests/**/*.test.ts"], environment: "node" },
});
