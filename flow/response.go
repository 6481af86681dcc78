package flow

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of a response that is read as XML or CSV.
const (
	maxElements = 200_000
	maxXMLDepth = 100
	maxCells    = 2_000_000
)

var errTooManyElements = errors.New("it has too many elements")

// readXML reads XML as {name: content of the root element}. An element with
// only text is that text; otherwise it is an object of its elements, with @name
// for attributes and #text for text. Elements of one name are a list.
func readXML(raw []byte) (any, error) {
	dec := xml.NewDecoder(bytes.NewReader(raw))
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) {
		return r, nil
	} // it is decoded already
	remaining := maxElements
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it has no element")
		}
		if err != nil {
			return nil, err
		}
		if start, ok := token.(xml.StartElement); ok {
			v, err := element(dec, start, 1, &remaining)
			return map[string]any{start.Name.Local: v}, err
		}
	}
}

func element(dec *xml.Decoder, start xml.StartElement, depth int, remaining *int) (any, error) {
	if *remaining -= 1 + len(start.Attr); *remaining < 0 || depth > maxXMLDepth {
		return nil, errTooManyElements
	}
	object := map[string]any{}
	for _, a := range start.Attr {
		if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
			object["@"+a.Name.Local] = a.Value
		}
	}
	var text strings.Builder
	for {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		switch token := token.(type) {
		case xml.CharData:
			text.Write(token)
		case xml.StartElement:
			v, err := element(dec, token, depth+1, remaining)
			if err != nil {
				return nil, err
			}
			addElement(object, token.Name.Local, v)
		case xml.EndElement:
			content := strings.TrimSpace(text.String())
			if len(object) == 0 {
				return content, nil
			}
			if content != "" {
				object["#text"] = content
			}
			return object, nil
		}
	}
}

// addElement adds an element to its parent.
func addElement(object map[string]any, name string, v any) {
	switch existing := object[name].(type) {
	case nil:
		object[name] = v
	case []any:
		object[name] = append(existing, v)
	default:
		object[name] = []any{existing, v}
	}
}

// readCSV reads rows as objects with the columns named by the first row. The
// separator is the comma, semicolon or tab, whichever is most frequent in that row.
func readCSV(raw []byte) (any, error) {
	first, _, _ := bytes.Cut(raw, []byte("\n"))
	reader := csv.NewReader(bytes.NewReader(raw))
	reader.FieldsPerRecord, reader.LazyQuotes, reader.ReuseRecord = -1, true, true
	for _, separator := range ";\t" {
		if bytes.Count(first, []byte(string(separator))) > bytes.Count(first, []byte(string(reader.Comma))) {
			reader.Comma = separator
		}
	}
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return []any{}, nil
	}
	if err != nil {
		return nil, err
	}
	names := columnNames(header)
	rows, remaining := []any{}, maxCells
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if remaining -= len(names); remaining < 0 {
			return nil, errors.New("it has too many cells")
		}
		row := make(map[string]any, len(names))
		for i, name := range names {
			row[name] = ""
			if i < len(record) {
				row[name] = record[i]
			}
		}
		rows = append(rows, row)
	}
}

// columnNames returns a unique name for each column, including those without a name
// and those whose name is taken.
func columnNames(header []string) []string {
	names, taken := make([]string, len(header)), map[string]bool{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if name == "" || taken[name] {
			name = fmt.Sprintf("column_%d", i+1)
		}
		taken[name] = true
		names[i] = name
	}
	return names
}
