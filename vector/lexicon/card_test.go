package lexicon

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestCard checks that the card has the hash of the table.
func TestCard(t *testing.T) {
	card, err := os.ReadFile("MODEL_CARD.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(packed))
	if !strings.Contains(string(card), hex.EncodeToString(sum[:])) {
		t.Errorf("MODEL_CARD.md describes another table: this one has the SHA-256 %x", sum)
	}
}
