package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// RotateKey replaces the master key of a folder that is not in use and encrypts
// every credential again. If it is interrupted, the next start can decrypt with
// both the old and the new key, and RotateKey can be run again. With keys given
// (they come from the environment) the first one encrypts, and no file is
// written.
//
// A refused agent stops it before anything changes. Credentials that none of
// the keys can decrypt were locked before and remain so.
func RotateKey(options Options) (resealed int, err error) {
	folder, err := prepareFolder(options)
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, folder.Close())
	}()
	if err := folder.load(); err != nil {
		return 0, err
	}
	for _, db := range folder.Agents() {
		if db.Problem() != nil {
			return 0, fmt.Errorf(
				"agent %s is refused, so its credentials cannot be encrypted again and the old key is kept: %w",
				db.id,
				db.Problem(),
			)
		}
	}
	fromFile := len(options.MasterKeys) == 0
	if fromFile {
		if err := folder.addMasterKey(); err != nil {
			return 0, err
		}
	}
	for _, db := range folder.Agents() {
		n, err := folder.resealAll(db)
		if err != nil {
			return resealed, fmt.Errorf("agent %s: %w", db.id, err)
		}
		resealed += n
	}
	if fromFile {
		err = writeMasterFile(folder.path, [][]byte{folder.keys[0].bytes})
	}
	return resealed, err
}

// addMasterKey puts a new key before the others, in the file and in memory.
func (folder *Folder) addMasterKey() error {
	key := make([]byte, MasterKeyBytes)
	_, _ = rand.Read(key)
	k, err := newMasterKey(key)
	if err != nil {
		return err
	}
	folder.keys = append(keyring{k}, folder.keys...)
	all := make([][]byte, len(folder.keys))
	for i, k := range folder.keys {
		all[i] = k.bytes
	}
	return writeMasterFile(folder.path, all)
}

// resealAll encrypts every credential of an agent with the first key and returns how
// many it could decrypt.
func (folder *Folder) resealAll(db *DB) (int, error) {
	return Write(context.Background(), db, func(tx *Tx) (int, error) {
		secrets, err := all(tx, scanSecret, "SELECT "+secretColumns+" FROM _secrets")
		if err != nil {
			return 0, err
		}
		n := 0
		for _, s := range secrets {
			plain, err := folder.keys.open(db.id, s)
			if err != nil {
				continue
			}
			if err := tx.putSecretFor(s.hosts, s.owner, s.field, plain); err != nil {
				return 0, err
			}
			n++
		}
		return n, nil
	})
}
