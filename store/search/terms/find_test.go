package terms

import (
	"fmt"
	"testing"
)

// TestFind checks that the words of a query are found in all their forms, common ones
// only when there are no others, and scripts without spaces by their pieces.
func TestFind(t *testing.T) {
	for _, tc := range []struct{ query, text, want string }{
		{"how do I get refunds", "How we refund: Refunded goods, refunding.", "[refund Refunded refunding]"},
		{"Café", "cafes and the CAFÉ", "[cafes CAFÉ]"},
		{"how to", "How to be", "[How to]"},
		{"MX-200 error", "the MX-200 shows Errors", "[MX 200 Errors]"},
		{"東京大学", "私は東京大学に東京から", "[東京大学 東京]"},
		{"shop", "", "[]"},
		{"", "shop", "[]"},
		{"...", "a b", "[]"},
	} {
		var found []string
		for _, r := range NewFinder(tc.query).Find(tc.text) {
			found = append(found, tc.text[r[0]:r[1]])
		}
		if got := fmt.Sprint(found); got != tc.want {
			t.Errorf("%q in %q: %s, want %s", tc.query, tc.text, got, tc.want)
		}
	}
}
