package document

import (
	"bytes"
	"encoding/xml"
	"path"
	"strings"
)

// relationship is one line of a .rels part (ECMA-376 part 2, section 8.3).
type relationship struct {
	id, kind string
	target   string // name of a part, or a URL if external
	external bool
}

// relationships reads a .rels part. Targets are resolved relative to folder,
// that of the part they belong to. Invalid ones are skipped: a document
// without its links is still a document.
func relationships(rels []byte, folder string) []relationship {
	var doc struct {
		Relationships []struct {
			ID         string `xml:"Id,attr"`
			Type       string `xml:"Type,attr"`
			Target     string `xml:"Target,attr"`
			TargetMode string `xml:"TargetMode,attr"`
		} `xml:"Relationship"`
	}
	if len(rels) == 0 || xml.NewDecoder(bytes.NewReader(rels)).Decode(&doc) != nil {
		return nil
	}
	out := make([]relationship, 0, len(doc.Relationships))
	for _, r := range doc.Relationships {
		rel := relationship{
			id:       r.ID,
			kind:     r.Type,
			target:   r.Target,
			external: r.TargetMode == "External",
		}
		switch {
		case rel.external:
		case strings.HasPrefix(rel.target, "/"):
			rel.target = path.Clean(rel.target)[1:]
		default:
			rel.target = path.Join("/", folder, rel.target)[1:]
		}
		out = append(out, rel)
	}
	return out
}

// relsOf returns the name of the .rels part of a part.
func relsOf(name string) string {
	folder, file := path.Split(name)
	return folder + "_rels/" + file + ".rels"
}
