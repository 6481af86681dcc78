package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// sameCode returns an error if two texts of a file differ in more than layout: in their
// tokens, without the semicolons and commas that the end of a line and a bracket need, or
// in the words of their comments. Parts of a string that + joins count as one.
func sameCode(before, after []byte) error {
	for _, of := range []struct {
		what string
		list func([]byte) []string
	}{{"tokens", tokens}, {"comments", commentWords}} {
		old, is := of.list(before), of.list(after)
		for i := range max(len(old), len(is)) {
			if i >= len(old) || i >= len(is) || old[i] != is[i] {
				return fmt.Errorf("%s differ: %q became %q", of.what, around(old, i), around(is, i))
			}
		}
	}
	return nil
}

func around(list []string, i int) string {
	return strings.Join(list[min(max(0, i-3), len(list)):min(i+4, len(list))], " ")
}

// tokens returns the tokens of a text.
func tokens(text []byte) (list []string) {
	list = append(list, "")
	scan(text, 0, func(_ int, kind token.Token, literal string) {
		last := len(list) - 1
		switch kind {
		case token.SEMICOLON:
			literal = ";"
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if list[last] == ";" || list[last] == "," {
				list = list[:last]
			}
			literal = kind.String()
		case token.STRING:
			value, err := strconv.Unquote(literal)
			if err != nil {
				break
			}
			literal = `"` + value
			if list[last] == "+" && strings.HasPrefix(list[last-1], `"`) {
				literal = list[last-1] + value
				list = list[:last-1]
			}
		default:
			if literal == "" {
				literal = kind.String()
			}
		}
		list = append(list, literal)
	})
	return list
}

// commentWords returns the words of all comments of a text.
func commentWords(text []byte) (list []string) {
	scan(text, scanner.ScanComments, func(_ int, kind token.Token, literal string) {
		if kind == token.COMMENT {
			literal = strings.TrimPrefix(literal, "//")
			list = append(list, strings.Fields(literal)...)
		}
	})
	return slices.DeleteFunc(list, func(word string) bool { return word == "*" })
}

// scan calls a function with each token of a text.
func scan(text []byte, mode scanner.Mode, do func(offset int, kind token.Token, literal string)) {
	set := token.NewFileSet()
	var s scanner.Scanner
	file := set.AddFile("", set.Base(), len(text))
	s.Init(file, text, nil, mode)
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return
		}
		do(file.Offset(pos), kind, literal)
	}
}
