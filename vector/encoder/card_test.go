package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestTheCardNamesTheModel fails if model.bin was rebuilt or damaged and the card
// still describes the old one.
func TestTheCardNamesTheModel(t *testing.T) {
	card, err := os.ReadFile("MODEL_CARD.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content())
	for what, want := range map[string]string{
		"SHA-256 of model.bin": hex.EncodeToString(sum[:]),
		"ID":                   shared(t).ID,
	} {
		if !strings.Contains(string(card), want) {
			t.Errorf("MODEL_CARD.md does not have the %s: %s", what, want)
		}
	}
}
