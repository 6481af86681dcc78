package main

import (
	"bytes"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// initTrace matches a line of GODEBUG=inittrace=1: a package, and the bytes that
// its initialization allocated.
var initTrace = regexp.MustCompile(`(?m)^init (\S+) @.*, (\d+) bytes, \d+ allocs$`)

// TestInitAllocatesLittle limits what each package allocates before main runs, and all of
// them together. Every process of the program pays for it, including those of scripts and
// documents, and after 4 MB, libraries included, the garbage collector runs.
func TestInitAllocatesLittle(t *testing.T) {
	const limit, limitOfAll = 200 << 10, 1100 << 10
	cmd := exec.CommandContext(t.Context(), os.Args[0], "version")
	cmd.Env = append(os.Environ(), asProgram+"=1", "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, trace.Bytes())
	}
	ours, all := 0, 0
	for _, m := range initTrace.FindAllStringSubmatch(trace.String(), -1) {
		if !strings.HasPrefix(m[1], "satchel/") {
			continue
		}
		ours++
		allocated, err := strconv.Atoi(m[2])
		if err != nil || allocated > limit {
			t.Errorf("%s allocates %s bytes, at most %d (%v)", m[1], m[2], limit, err)
		}
		all += allocated
	}
	if all > limitOfAll {
		t.Errorf("our packages allocate %d bytes, at most %d:\n%s", all, limitOfAll, trace.Bytes())
	}
	if ours < 10 {
		t.Errorf("only %d packages of ours in the trace:\n%s", ours, trace.Bytes())
	}
}

// TestPatternsCompile compiles the regular expressions that agent.Pattern otherwise
// compiles when they are first used.
func TestPatternsCompile(t *testing.T) {
	compiled := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") {
			return err
		}
		source, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(source, []byte("agent.Pattern(")) {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || types.ExprString(call.Fun) != "agent.Pattern" {
				return true
			}
			compiled++
			at := files.Position(call.Pos())
			text, err := types.Eval(files, nil, token.NoPos, types.ExprString(call.Args[0]))
			if err != nil || text.Value == nil {
				t.Errorf("%s: the pattern is not a constant text", at)
			} else if _, err := regexp.Compile(constant.StringVal(text.Value)); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			return true
		})
		return nil
	})
	if err != nil || compiled < 30 {
		t.Errorf("%d patterns, %v", compiled, err)
	}
}
