package store

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// keyring holds the master keys of a folder: the first encrypts, all decrypt.
type keyring []masterKey

type masterKey struct {
	id    string // first 8 hexadecimal digits of a hash of the key
	bytes []byte
	aead  cipher.AEAD
}

// MasterKeyBytes is the length of a master key.
const MasterKeyBytes = 32

func newMasterKey(key []byte) (masterKey, error) {
	if len(key) != MasterKeyBytes {
		return masterKey{}, fmt.Errorf("a master key has %d bytes, this one has %d", MasterKeyBytes, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return masterKey{}, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return masterKey{}, err
	}
	sum := sha256.Sum256(append([]byte("satchel master key "), key...))
	return masterKey{
		id:    hex.EncodeToString(sum[:4]),
		bytes: key,
		aead:  aead,
	}, nil
}

// errLocked reports that a secret was encrypted with another master key.
var errLocked = errors.New("encrypted with another master key")

// seal encrypts a secret with AES-256-GCM under the first key. It can only be
// decrypted for the same agent, owner, field and hosts.
func (k keyring) seal(agentID string, s secret, plain string) (keyID string, sealed []byte) {
	aead := k[0].aead
	nonce := make(
		[]byte,
		aead.NonceSize(),
		aead.NonceSize()+len(plain)+aead.Overhead(),
	)
	_, _ = rand.Read(nonce)
	return k[0].id, aead.Seal(nonce, nonce, []byte(plain), sealContext(agentID, s))
}

// open decrypts what seal returned; the error is errLocked if the key is not in the
// ring.
func (k keyring) open(agentID string, secret secret) (string, error) {
	for _, key := range k {
		if key.id != secret.keyID || len(secret.sealed) < key.aead.NonceSize() {
			continue
		}
		n := key.aead.NonceSize()
		plain, err := key.aead.Open(
			nil,
			secret.sealed[:n],
			secret.sealed[n:],
			sealContext(agentID, secret),
		)
		if err != nil {
			return "", errLocked
		}
		return string(plain), nil
	}
	return "", errLocked
}

func sealContext(agentID string, s secret) []byte {
	context := agentID + "\x00" + s.owner + "\x00" + s.field
	if s.hosts != "" {
		context += "\x00" + s.hosts
	}
	return []byte(context)
}

// loadKeyring uses the given keys or, without any, those in master.key, which is
// created if it is missing.
func loadKeyring(folder string, given [][]byte) (keyring, error) {
	keys := given
	if len(keys) == 0 {
		var err error
		if keys, err = readMasterFile(folder); err != nil {
			return nil, err
		}
	}
	var ring keyring
	for _, key := range keys {
		k, err := newMasterKey(key)
		if err != nil {
			return nil, err
		}
		ring = append(ring, k)
	}
	return ring, nil
}

func masterPath(folder string) string { return filepath.Join(folder, "master.key") }

func readMasterFile(folder string) ([][]byte, error) {
	data, err := os.ReadFile(masterPath(folder))
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, MasterKeyBytes)
		_, _ = rand.Read(key)
		return [][]byte{key}, writeMasterFile(folder, [][]byte{key})
	}
	if err != nil {
		return nil, fmt.Errorf("read the master key: %w", err)
	}
	var keys [][]byte
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			key, err := base64.StdEncoding.DecodeString(line)
			if err != nil || len(key) != MasterKeyBytes {
				return nil, fmt.Errorf(
					"%s does not hold a master key: each line is %d bytes in base64",
					masterPath(folder),
					MasterKeyBytes,
				)
			}
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf(
			"%s is empty; restore it, or remove it to start with a new key (stored credentials stay locked)",
			masterPath(folder),
		)
	}
	return keys, nil
}

// writeMasterFile replaces master.key atomically.
func writeMasterFile(folder string, keys [][]byte) error {
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	}
	temp := masterPath(folder) + ".new"
	if err := writeSynced(temp, []byte(text.String())); err != nil {
		return fmt.Errorf("write the master key: %w", err)
	}
	if err := os.Rename(temp, masterPath(folder)); err != nil {
		return fmt.Errorf("write the master key: %w", err)
	}
	return SyncFolder(folder)
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncFolder makes new, renamed and removed names in a folder durable. Windows has
// no call for that; its file system logs such changes itself.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
