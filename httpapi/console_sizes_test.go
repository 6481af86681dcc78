package httpapi

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	staticImport = regexp.MustCompile(`(?:from|import)"(\.[^"]+)"`)
)

// builtFile returns a file of the built console.
func builtFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := embedded(consoleFiles + name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// loadedWith returns the files that the browser loads for a file: the file and its static
// imports, except those that are loaded already.
func loadedWith(t *testing.T, name string, loaded map[string]bool) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if files[name] || loaded[name] {
			return
		}
		files[name] = true
		for _, m := range staticImport.FindAllSubmatch(builtFile(t, name), -1) {
			add(path.Join(path.Dir(name), string(m[1])))
		}
	}
	add(name)
	return files
}

// compressed returns the length of files in gzip.
func compressed(t *testing.T, files map[string]bool) (size int) {
	t.Helper()
	for name := range files {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if _, err := w.Write(builtFile(t, name)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		size += out.Len()
	}
	return size
}

// together returns the files loaded for several, some of which may not exist.
func together(t *testing.T, loaded map[string]bool, names ...string) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	for _, name := range names {
		if fileExists(consoleFiles + name) {
			maps.Copy(files, loadedWith(t, name, loaded))
		}
	}
	return files
}

// TestConsoleSizes compares what the browser loads with limits in KB of gzip: the first
// page, each page after it, and the parts of pages that load later.
func TestConsoleSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	check := func(what string, limit float64, files map[string]bool) {
		t.Helper()
		kb := float64(compressed(t, files)) / 1024
		t.Logf("%-20s %5.1f KB of %3.0f in %d files", what, kb, limit, len(files))
		if kb > limit {
			t.Errorf(
				"%s: %.1f KB of gzip, at most %.0f: %s",
				what,
				kb,
				limit,
				strings.Join(slices.Sorted(maps.Keys(files)), " "),
			)
		}
	}
	first := map[string]bool{"app/index.html": true}
	for _, m := range regexp.MustCompile(`(?:src|href)="console/([^"]+)"`).FindAllSubmatch(
		builtFile(t, "app/index.html"),
		-1,
	) {
		if file := string(m[1]); path.Ext(file) != ".svg" {
			maps.Copy(first, loadedWith(t, file, first))
		}
	}
	check("first page", 43, first)
	if len(first) > 6 {
		t.Errorf("the first page is %d files, at most 6", len(first))
	}
	check("editor", 20, together(t, first, "app/workflow.js", "app/workflow.css", "app/editor-editor.js"))
	check("execution", 20, together(t, first, "app/workflow.js", "app/workflow.css", "app/execution-execution.js"))
	workflow := together(t, first, "app/workflow.js")
	maps.Copy(workflow, first)
	check("canvas", 75, together(t, workflow, "app/editor-canvas.js", "lib/xyflow.css"))
	check("code editor", 175, together(t, first, "app/codemirror.js"))
	check("live view", 45, together(t, nil, "app/live.js", "app/live.css"))
	check("widget", 25, together(t, nil, "app/widget-frame.js", "app/widget-frame.css"))
	check("loader of the widget", 4, together(t, nil, "app/widget-loader.js"))

	own := []string{
		"main", "workflow", "editor-editor", "execution-execution", "editor-canvas", "codemirror", "live",
		"widget-frame", "widget-loader",
	}
	pages, err := fs.Glob(pageFiles, consoleFiles+"app/*.js"+packed)
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d files: %v", len(pages), err)
	}
	for _, file := range pages {
		name := strings.TrimSuffix(path.Base(file), ".js"+packed)
		loaded := first
		if strings.HasPrefix(name, "editor-") || strings.HasPrefix(name, "execution-") {
			loaded = workflow
		}
		files := together(t, loaded, "app/"+name+".js", "app/"+name+".css")
		delete(files, "lib/marked.js") // renders Markdown where there is some
		limit := 20.0
		if name == "editor-panel" {
			limit = 22 // its preview reads templates as the service does
		}
		if len(files) > 0 && !slices.Contains(own, name) {
			check(name, limit, files)
		}
	}
}
