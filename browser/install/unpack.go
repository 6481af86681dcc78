package install

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Limits of an unpacked package.
const (
	maxUnpacked = 512 << 20 // bytes
	maxEntries  = 20_000
)

func acceptAll(string) bool { return true }

// unpack writes the files of an npm package, a gzipped tar whose entries are below
// "package/", to a folder that it creates. Names that lead out of the folder, links and
// devices are rejected; keep gets names without "package/". After an error the caller
// must remove what was written.
func unpack(packed io.Reader, folder string, keep func(name string) bool) error {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("is not gzipped: %w", err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	bounded := &io.LimitedReader{R: plain, N: maxUnpacked + 1}
	files := tar.NewReader(bounded)
	for range maxEntries {
		header, err := files.Next()
		if bounded.N <= 0 {
			return fmt.Errorf("unpacks to more than %d bytes", maxUnpacked)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("is not a tar archive: %w", err)
		}
		if err := writeEntry(root, header, files, keep); err != nil {
			return err
		}
	}
	return fmt.Errorf("has more than %d entries", maxEntries)
}

// writeEntry writes an entry of an archive.
func writeEntry(root *os.Root, header *tar.Header, content io.Reader, keep func(string) bool) error {
	name, ok := strings.CutPrefix(path.Clean(header.Name), "package/")
	switch {
	case header.Typeflag == tar.TypeDir, header.Typeflag == tar.TypeXGlobalHeader:
		return nil // folders are created with their files
	case header.Typeflag != tar.TypeReg:
		return fmt.Errorf("%.100q is neither a file nor a folder", header.Name)
	case !ok || !filepath.IsLocal(filepath.FromSlash(name)):
		return fmt.Errorf("%.100q lies outside the package", header.Name)
	case !keep(name):
		return nil
	}
	mode := os.FileMode(0o644)
	if header.Mode&0o100 != 0 {
		mode = 0o755
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}
