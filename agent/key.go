package agent

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// AllAgents in Key.Agents means every agent that the key's creator can access.
const AllAgents = "*"

// keyPrefixLength is how much of a key is stored in clear, to recognize it.
const keyPrefixLength = len("satchel_") + 6

// Key is an API key as stored: only a hash of the key itself is known.
type Key struct {
	ID         string   `json:"id" example:"key-06f1q2s3t4v5a6b7c8d9"`
	Name       string   `json:"name" example:"nightly import"`
	Prefix     string   `json:"prefix" doc:"The first characters of the key, to recognize it." example:"satchel_Zk3v9q"`
	Role       Role     `json:"role" enum:"owner,admin,viewer" example:"admin"`
	Agents     []string `json:"agents" doc:"Agent ids, or * for every agent that the key's creator can access." example:"[\"*\"]"`
	CreatedAt  Time     `json:"created_at" format:"date-time"`
	ExpiresAt  Time     `json:"expires_at" doc:"null if it never expires." nullable:"true" format:"date-time"`
	Parent     string   `json:"parent_id,omitempty" doc:"The key that created this one. This key expires with it." example:"key-06f1q2s3t4v5a6b7c8d8"`
	LastUsedAt Time     `json:"-"`
	CreatedBy  string   `json:"-"` // email of the creator; empty if created without an identity
	Hash       string   `json:"-"` // hex SHA-256 of the key
}

// Reaches reports whether the key is valid for an agent.
func (k *Key) Reaches(agentID string) bool {
	return slices.Contains(k.Agents, AllAgents) || slices.Contains(k.Agents, agentID)
}

// Expired reports whether the key has expired.
func (k *Key) Expired(now Time) bool {
	return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt.Time)
}

// Covers reports whether other is no more powerful than k: it has no stronger
// role and no access to other agents.
func (k *Key) Covers(other *Key) bool {
	beyond := func(id string) bool { return !k.Reaches(id) }
	return k.Role.Covers(other.Role) && !slices.ContainsFunc(other.Agents, beyond)
}

// LimitExpiry makes k expire no later than the key that creates it. It returns an
// error if k was given a later expiry.
func (k *Key) LimitExpiry(creator *Key) error {
	if creator.ExpiresAt.IsZero() {
		return nil
	}
	if k.ExpiresAt.IsZero() {
		k.ExpiresAt = creator.ExpiresAt
	}
	if k.ExpiresAt.After(creator.ExpiresAt.Time) {
		return Errorf(
			CodeForbidden,
			"a key cannot expire later than the key that creates it",
		).With("field", "expires_at")
	}
	return nil
}

// Validate checks a client's input for a new key.
func (k *Key) Validate(now Time) error {
	var is Issues
	is.Check(strings.TrimSpace(k.Name) != "", "name", "is required")
	is.checkText("name", k.Name, 100)
	is.Check(k.Role.Valid(), "role", "must be owner, admin or viewer")
	is.Check(len(k.Agents) > 0, "agents", `is required and must be a list of agent ids, or ["*"]`)
	is.Check(len(k.Agents) <= 1000, "agents", "must have at most 1000 entries")
	for _, id := range k.Agents {
		is.Check(id != "", "agents", "must not have empty entries")
		is.checkText("agents", id, 100)
	}
	is.Check(!k.Expired(now), "expires_at", "must be in the future")
	return is.Err()
}

// NewKeySecret returns a new key, "satchel_" and 32 random bytes in
// hexadecimal, with the prefix and the hash to store. The key is shown once.
func NewKeySecret() (secret, prefix, hash string) {
	var b [32]byte
	_, _ = rand.Read(b[:])
	secret = "satchel_" + hex.EncodeToString(b[:])
	return secret, secret[:keyPrefixLength], HashKey(secret)
}

// HashKey returns the hash that is stored and compared instead of a key.
func HashKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
