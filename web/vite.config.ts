import { defineConfig } from "vite";

// File names carry no digest: the built page is committed, and the server has browsers ask before they reuse a copy.
const names = {
  entryFileNames: "assets/[name].js",
  chunkFileNames: "assets/[name].js",
  assetFileNames: "assets/[name][extname]",
};

// The runtime gives its sandbox a home folder with a made-up name. Nothing reads it, and the page names no folders.
const nobodysHome = {
  name: "nobodys-home",
  renderChunk: (code: string) => code.replaceAll(/\/home\/\w+/g, "/"),
};

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/measureflow/explorer/static",
    emptyOutDir: false, // the exported models live there too
    sourcemap: false,
    target: "es2022",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1000,
    rolldownOptions: { output: names },
  },
  worker: { format: "es", plugins: () => [nobodysHome], rolldownOptions: { output: names } },
});
