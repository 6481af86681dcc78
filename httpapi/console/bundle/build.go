package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// libraries maps the packages that src may import to the files of dist/lib that contain
// them.
var libraries = map[string]string{
	"preact":                      "../lib/preact.js",
	"preact/hooks":                "../lib/preact.js",
	"preact/compat":               "../lib/preact.js",
	"preact/jsx-runtime":          "../lib/preact.js",
	"@preact/signals":             "../lib/preact.js",
	"@xyflow/react":               "../lib/xyflow.js",
	"@dagrejs/dagre":              "../lib/dagre.js",
	"marked":                      "../lib/marked.js",
	"lucide":                      "../lib/icons.js",
	"@codemirror/state":           "../lib/codemirror.js",
	"@codemirror/view":            "../lib/codemirror.js",
	"@codemirror/commands":        "../lib/codemirror.js",
	"@codemirror/language":        "../lib/codemirror.js",
	"@codemirror/autocomplete":    "../lib/codemirror.js",
	"@codemirror/search":          "../lib/codemirror.js",
	"@codemirror/lang-sql":        "../lib/codemirror.js",
	"@codemirror/lang-json":       "../lib/codemirror.js",
	"@codemirror/lang-javascript": "../lib/codemirror.js",
	"@lezer/highlight":            "../lib/codemirror.js",
}

// targets are the oldest browsers that the console is built for: those that support
// light-dark().
var targets = []api.Engine{
	{Name: api.EngineChrome, Version: "123"},
	{Name: api.EngineFirefox, Version: "121"},
	{Name: api.EngineSafari, Version: "17.5"},
}

// together names, by page, files that most of its lazily loaded parts import. All are in
// one file, which is loaded with the page, instead of a small file for each combination.
var together = map[string][]string{
	"workflow.tsx": {
		"components.tsx", "lazy.tsx", "run.ts", "selection.ts", "state.ts", "viewsegments.tsx", "zone.ts",
	},
}

// buildApp builds the files of dist/app, by name: main.js and main.css, a script and a
// style sheet for each page, and the files of the live view, of the widget and of
// src/lazy. A page is loaded when it is first shown; code that it shares with others
// (data, ui) comes from main.js.
func buildApp(root string) (map[string][]byte, error) {
	src := filepath.Join(root, "src")
	entries, err := filepath.Glob(filepath.Join(src, "pages", "*.tsx"))
	if err != nil {
		return nil, err
	}
	lazy, err := filepath.Glob(filepath.Join(src, "lazy", "*.ts*"))
	if err != nil {
		return nil, err
	}
	widget, err := filepath.Glob(filepath.Join(src, "widget", "widget-*.ts*"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range slices.Concat(entries, lazy, widget, []string{
		filepath.Join(src, "main.tsx"),
		filepath.Join(src, "live.tsx"),
	}) {
		built, err := build(entry, resolveApp(src, entry))
		if err != nil {
			return nil, err
		}
		for name, content := range built {
			if same, ok := files[name]; ok && !bytes.Equal(same, content) {
				return nil, fmt.Errorf("two entries build different files %s", name)
			}
			files[name] = content
		}
	}
	for _, name := range []string{"index.html", "live.html", "icon.svg", "widget/widget-frame.html"} {
		content, err := os.ReadFile(filepath.Join(src, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		files[path.Base(name)] = content
	}
	return files, nil
}

// build bundles one entry; the resulting files are named after it. What the entry loads
// with import() goes into separate files, as does code that several of these share.
func build(entry string, plugin api.Plugin) (map[string][]byte, error) {
	var shared []string
	for _, name := range together[filepath.Base(entry)] {
		shared = append(shared, filepath.Join(filepath.Dir(entry), "..", "editor", name))
	}
	result := api.Build(api.BuildOptions{
		EntryPoints:       []string{entry},
		Inject:            shared,
		Bundle:            true,
		Format:            api.FormatESModule,
		Platform:          api.PlatformBrowser,
		Outdir:            filepath.Dir(entry),
		Splitting:         true,
		ChunkNames:        "[name]-[hash]",
		Metafile:          true,
		Engines:           targets,
		Charset:           api.CharsetUTF8,
		LegalComments:     api.LegalCommentsNone,
		MinifyWhitespace:  true,
		MinifySyntax:      true,
		MinifyIdentifiers: true,
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		TsconfigRaw:       "{}",
		Define:            map[string]string{"process.env.NODE_ENV": `"production"`},
		Plugins:           []api.Plugin{plugin},
		LogLevel:          api.LogLevelSilent,
	})
	var errs []error
	for _, message := range append(result.Errors, result.Warnings...) {
		at := ""
		if l := message.Location; l != nil {
			at = fmt.Sprintf("%s:%d: ", l.File, l.Line)
		}
		errs = append(errs, errors.New(at+message.Text))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	names, err := chunkNames(result.Metafile)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, f := range result.OutputFiles {
		content := f.Contents
		for old, name := range names {
			content = bytes.ReplaceAll(content, []byte(old), []byte(name))
		}
		name := cmp.Or(names[filepath.Base(f.Path)], filepath.Base(f.Path))
		if _, ok := files[name]; ok {
			return nil, fmt.Errorf(
				"%s: two files are called %s; is what import() loads imported by another part too?",
				filepath.Base(entry),
				name,
			)
		}
		files[name] = content
	}
	return files, nil
}

// chunkNames maps the files of a build that have a hash in their names to stable names:
// the folder and name of the imported file, or of the file that contributes the most to a
// shared chunk.
func chunkNames(metafile string) (map[string]string, error) {
	var meta struct {
		Outputs map[string]struct {
			EntryPoint string
			Inputs     map[string]struct{ BytesInOutput int }
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	names := map[string]string{}
	for output, file := range meta.Outputs {
		if !hashedName.MatchString(path.Base(output)) {
			continue
		}
		source := file.EntryPoint
		if source == "" {
			for input, part := range file.Inputs {
				if now := file.Inputs[source]; source == "" ||
					part.BytesInOutput > now.BytesInOutput ||
					part.BytesInOutput == now.BytesInOutput && input < source {
					source = input
				}
			}
		}
		base := strings.TrimSuffix(path.Base(source), path.Ext(source))
		names[path.Base(output)] = path.Base(path.Dir(source)) + "-" + base + ".js"
	}
	return names, nil
}

// hashedName matches the names of files that ChunkNames applies to.
var hashedName = regexp.MustCompile(`-[A-Z0-9]{8}\.js$`)

// resolveApp makes packages, and for pages the code they share, external imports: from
// dist/lib and from main.js. A package that libraries does not list is an error.
func resolveApp(src, entry string) api.Plugin {
	isPage := filepath.Dir(entry) != src
	return api.Plugin{Name: "app", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `^[^./]`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			if a.Kind == api.ResolveEntryPoint {
				return api.OnResolveResult{}, nil
			}
			lib, ok := libraries[a.Path]
			if !ok {
				return api.OnResolveResult{}, fmt.Errorf("%q is not a package of the console", a.Path)
			}
			return api.OnResolveResult{Path: lib, External: true}, nil
		})
		build.OnResolve(api.OnResolveOptions{Filter: `^\.`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			rel, err := filepath.Rel(src, filepath.Join(a.ResolveDir, a.Path))
			if err != nil || !isPage || strings.HasSuffix(rel, ".css") {
				return api.OnResolveResult{}, err
			}
			switch top, _, nested := strings.Cut(filepath.ToSlash(rel), "/"); {
			case (top == "ui" || top == "data") && nested:
				return api.OnResolveResult{}, fmt.Errorf("import %q from ../%s, which main.js exports", a.Path, top)
			case top == "ui" || top == "data":
				return api.OnResolveResult{Path: "./main.js", External: true}, nil
			}
			return api.OnResolveResult{}, nil
		})
	}}
}

// buildLib builds the files of dist/lib from the entries in dir, where the packages are
// also installed. Preact replaces React.
func buildLib(dir string) (map[string][]byte, error) {
	entries, err := filepath.Glob(filepath.Join(dir, "*.js"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		built, err := build(entry, resolveLib(entry))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(entry), err)
		}
		for name, content := range built {
			files[name] = content
		}
	}
	return files, nil
}

// resolveLib makes every file except preact.js import Preact, including under the name of
// React, from that file. Calls of require get the same file through a module that
// re-exports it.
func resolveLib(entry string) api.Plugin {
	const required = "required"
	return api.Plugin{Name: "lib", Setup: func(build api.PluginBuild) {
		if filepath.Base(entry) == "preact.js" {
			return
		}
		build.OnResolve(
			api.OnResolveOptions{Filter: `^(preact|react|react-dom)(/|$)`},
			func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				if a.Kind == api.ResolveJSRequireCall {
					return api.OnResolveResult{Path: "preact", Namespace: required}, nil
				}
				return api.OnResolveResult{Path: "./preact.js", External: true}, nil
			},
		)
		build.OnLoad(
			api.OnLoadOptions{Filter: `.*`, Namespace: required},
			func(api.OnLoadArgs) (api.OnLoadResult, error) {
				handOn := `export * from "preact"; export { default } from "preact";`
				return api.OnLoadResult{Contents: &handOn}, nil
			},
		)
	}}
}
