package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	generatedHeader = regexp.MustCompile(`(?im)^(//|/\*).{0,120}(generated|do not edit|minified)`)
	skippedFolders  = []string{".git", "node_modules", "testdata", "dist", "bin", "build", "vendor"}
)

// sources returns the Go and TypeScript files below some paths, without generated ones.
func sources(roots []string) (names []string, err error) {
	generated := generatedPaths()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if name != root && slices.Contains(skippedFolders, entry.Name()) {
					return filepath.SkipDir
				}
				return nil
			}
			name = filepath.ToSlash(filepath.Clean(name))
			switch filepath.Ext(name) {
			case ".go", ".ts", ".tsx", ".mts":
			default:
				return nil
			}
			if strings.HasSuffix(name, ".d.ts") || slices.ContainsFunc(generated, func(path string) bool {
				return name == path || strings.HasPrefix(name, path+"/")
			}) {
				return nil
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			head := bytes.Join(
				bytes.SplitN(text, []byte("\n"), 6)[:min(5, bytes.Count(text, []byte("\n"))+1)],
				[]byte("\n"),
			)
			if !generatedHeader.Match(head) {
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// generatedPaths returns the paths below "# generated" in .prettierignore.
func generatedPaths() (paths []string) {
	text, _ := os.ReadFile(".prettierignore")
	inList := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			inList = strings.Contains(line, "generated")
		} else if inList && strings.HasPrefix(line, "/") {
			paths = append(paths, strings.Trim(line, "/"))
		}
	}
	return paths
}
