package lexicon

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestCard expects the hash of the table in its card.
func TestCard(t *testing.T) {
	card, err := os.ReadFile("MODEL_CARD.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(packed))
	if !strings.Contains(string(card), hex.EncodeToString(sum[:])) {
		t.Errorf("MODEL_CARD.md is of another table: this one has the SHA-256 %x", sum)
	}
}
