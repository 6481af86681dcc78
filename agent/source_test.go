package agent

import "testing"

func TestPlace(t *testing.T) {
	for want, m := range map[string]ChunkMetadata{
		"":                    {},
		"page 4 · Returns":    {Page: 4, Section: "Returns", Sections: []string{"Returns"}},
		"pages 4–5 · Returns": {Page: 4, LastPage: 5, Section: "Returns", Sections: []string{"Returns"}},
		"Shop > Returns · lines 10–31": {
			Section:  "Shop > Returns",
			Sections: []string{"Shop > Returns"},
			Line:     10,
			LastLine: 31,
		},
		"line 7": {Line: 7, LastLine: 7},
		"Shop > Returns · Hours · Staff · …": {
			Section:  "Shop > Returns",
			Sections: []string{"Shop > Returns", "Shop > Hours", "Staff", "Shop > Parking"},
		},
	} {
		if m.SetPlace(); m.Place != want {
			t.Errorf("%+v is formatted as %q, want %q", m, m.Place, want)
		}
	}
}
