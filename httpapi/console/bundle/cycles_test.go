package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestImportCycles fails with the files of an import cycle in src. Imports of types and
// those that load later count like any other.
func TestImportCycles(t *testing.T) {
	root, err := console()
	if err != nil {
		t.Fatal(err)
	}
	graph, err := importGraph(os.DirFS(filepath.Join(root, "src")))
	if err != nil || len(graph) < 200 {
		t.Fatalf("%d files: %v", len(graph), err)
	}
	if cycle := findCycle(graph); cycle != nil {
		t.Errorf("import cycle: %s", strings.Join(cycle, " imports\n\t"))
	}
}

// TestFindsImportCycles checks that each kind of import is found.
func TestFindsImportCycles(t *testing.T) {
	for source, want := range map[string]string{
		`import { b } from "./b";`:                             "a.ts b/index.tsx a.ts",
		"import {\n  b,\n} from \"./b\";":                      "a.ts b/index.tsx a.ts",
		`import type { B } from "./b";`:                        "a.ts b/index.tsx a.ts",
		`import "./b";`:                                        "a.ts b/index.tsx a.ts",
		`export * from "./b";`:                                 "a.ts b/index.tsx a.ts",
		`const load = () => import("./b");`:                    "a.ts b/index.tsx a.ts",
		`const load = (): Promise<typeof import("./b")> => x;`: "a.ts b/index.tsx a.ts",
		`import { c } from "./c";`:                             "",
		`// import { b } from "./b";`:                          "",
	} {
		graph, err := importGraph(fstest.MapFS{
			"a.ts": {Data: []byte(source)},
			"b/index.tsx": {
				Data: []byte(`import { a } from "../a"; import "./b.css"; import { signal } from "@preact/signals";`),
			},
			"c.ts": {Data: []byte(`export const c = 1;`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(findCycle(graph), " "); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

var (
	comment  = regexp.MustCompile(`(?ms)/\*.*?\*/|^\s*//.*?$`)
	imported = regexp.MustCompile(`\b(?:from|import)\s*\(?\s*"(\.[^"]+)"`)
)

// importGraph returns the TypeScript files of src with those that each imports.
func importGraph(src fs.FS) (map[string][]string, error) {
	sources := map[string]string{}
	err := fs.WalkDir(src, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".ts" && path.Ext(name) != ".tsx" {
			return err
		}
		source, err := fs.ReadFile(src, name)
		sources[name] = comment.ReplaceAllString(string(source), "")
		return err
	})
	if err != nil {
		return nil, err
	}
	graph := map[string][]string{}
	for name, source := range sources {
		graph[name] = nil
		for _, match := range imported.FindAllStringSubmatch(source, -1) {
			target := path.Join(path.Dir(name), match[1])
			if path.Ext(target) == ".css" {
				continue
			}
			candidates := []string{target + ".ts", target + ".tsx", target + "/index.ts", target + "/index.tsx"}
			at := slices.IndexFunc(candidates, func(file string) bool {
				_, ok := sources[file]
				return ok
			})
			if at < 0 {
				return nil, fmt.Errorf("%s imports %s, which is no file", name, match[1])
			}
			graph[name] = append(graph[name], candidates[at])
		}
	}
	return graph, nil
}

// findCycle returns the files of a cycle in the order of their imports, the first again at
// the end; nil if there is none.
func findCycle(graph map[string][]string) []string {
	done := map[string]bool{}
	var visit func(way []string) []string
	visit = func(way []string) []string {
		file := way[len(way)-1]
		if at := slices.Index(way, file); at < len(way)-1 {
			return way[at:]
		}
		if done[file] {
			return nil
		}
		for _, next := range graph[file] {
			if cycle := visit(append(way, next)); cycle != nil {
				return cycle
			}
		}
		done[file] = true
		return nil
	}
	for _, file := range slices.Sorted(maps.Keys(graph)) {
		if cycle := visit([]string{file}); cycle != nil {
			return cycle
		}
	}
	return nil
}
