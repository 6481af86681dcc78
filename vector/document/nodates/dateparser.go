// Package dateparser stands in for github.com/markusmobius/go-dateparser,
// which go-trafilatura brings along to find out when a page was written.
// Satchel does not ask for that, and the real module costs every start of the
// program 260 ms and 80 MB for tables of two hundred languages. The go.mod of
// Satchel puts this module in its place. It has the names that go-htmldate
// v1.9.1 needs, and finds no date in any text.
package dateparser

import (
	"errors"
	"time"
)

// ParserType names a way of reading dates.
type ParserType uint8

// The ways that go-htmldate asks for.
const (
	CustomFormat ParserType = iota
	AbsoluteTime
)

// PreferredDateSource says which of several dates is meant.
type PreferredDateSource uint8

// Past prefers dates gone by.
const Past PreferredDateSource = 0

// Configuration is what go-htmldate sets.
type Configuration struct {
	PreferredDateSource PreferredDateSource
	StrictParsing       bool
}

// Date is a date that was found.
type Date struct {
	Time time.Time
}

// Parser reads no dates.
type Parser struct {
	ParserTypes []ParserType
}

var errNoDates = errors.New("dates are not read here")

// Parse always answers an error.
func (*Parser) Parse(*Configuration, string, ...string) (Date, error) {
	return Date{}, errNoDates
}
