package capture

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/superfly/ltx"
)

// encoder is a reusable LTX encoder: one takes 140 KB, nearly all of it for the
// compressor's table, while a commit changes only a few pages.
type encoder struct {
	ltx.Encoder
	unused ltx.Encoder
	out    bytes.Buffer
}

var encoders = sync.Pool{New: func() any {
	e := &encoder{}
	unused, _ := ltx.NewEncoder(&e.out) // never fails
	e.unused = *unused
	return e
}}

// encode writes the pages of a span as an LTX file of the transactions first to last.
func encode(wal *wal, span span, first, last uint64, at int64) ([]byte, error) {
	slices.SortFunc(span.frames, func(a, b frame) int {
		return cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.offset, b.offset))
	})
	enc := encoders.Get().(*encoder)
	defer enc.release()
	enc.Encoder = enc.unused
	if err := begin(&enc.Encoder, ltx.Header{
		PageSize:  uint32(wal.pageSize),
		Commit:    span.size,
		MinTXID:   ltx.TXID(first),
		MaxTXID:   ltx.TXID(last),
		Timestamp: at,
	}); err != nil {
		return nil, err
	}
	page := make([]byte, wal.pageSize)
	for i, f := range span.frames {
		if i+1 < len(span.frames) && span.frames[i+1].page == f.page || f.page > span.size {
			continue // there is a newer one, or the database has become shorter
		}
		if err := wal.page(f, page); err != nil {
			return nil, err
		}
		if err := enc.EncodePage(ltx.PageHeader{Pgno: f.page}, page); err != nil {
			return nil, err
		}
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(enc.out.Bytes()), nil
}

// release returns the encoder for reuse, unless a large commit has made it too
// large.
func (e *encoder) release() {
	if e.out.Cap() <= 1<<20 {
		e.out.Reset()
		encoders.Put(e)
	}
}

func begin(enc *ltx.Encoder, h ltx.Header) error {
	h.Version, h.Flags = ltx.Version, ltx.HeaderFlagNoChecksum
	return enc.EncodeHeader(h)
}

// writeSnapshot writes a database file, which must not change meanwhile, as an LTX
// file that contains everything up to a transaction.
func writeSnapshot(ctx context.Context, out io.Writer, path string, pageSize uint32, txid uint64, at int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	pages := uint32(info.Size() / int64(pageSize))
	if pages == 0 || info.Size()%int64(pageSize) != 0 {
		return errors.New("the database file has no whole pages")
	}
	enc, err := ltx.NewEncoder(out)
	if err == nil {
		err = begin(enc, ltx.Header{
			PageSize:  pageSize,
			Commit:    pages,
			MinTXID:   1,
			MaxTXID:   ltx.TXID(txid),
			Timestamp: at,
		})
	}
	if err != nil {
		return err
	}
	data, locked := make([]byte, pageSize), ltx.LockPgno(pageSize)
	for n := uint32(1); n <= pages; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if n == locked {
			continue
		}
		if _, err := file.ReadAt(data, int64(n-1)*int64(pageSize)); err != nil {
			return err
		}
		if err := enc.EncodePage(ltx.PageHeader{Pgno: n}, data); err != nil {
			return err
		}
	}
	return enc.Close()
}

// Merge merges consecutive LTX files, given in any order, into one.
func Merge(ctx context.Context, out io.Writer, parts []io.Reader) error {
	c, err := ltx.NewCompactor(out, parts)
	if err != nil {
		return err
	}
	c.HeaderFlags = ltx.HeaderFlagNoChecksum
	return c.Compact(ctx)
}

// Verify returns what is wrong with an LTX file.
func Verify(part io.Reader) error {
	dec := ltx.NewDecoder(part)
	dec.SetRetainPageIndex(false)
	return dec.Verify()
}

// Apply writes the pages of an LTX file into a database file, which is empty or
// contains everything before it, and sets the file's length. The checksum of the LTX
// file is verified.
func Apply(file *os.File, part io.Reader) error {
	return apply(file, part, nil)
}

// ApplyRange is Apply for an LTX file that must have the transactions first to last, of
// which the last is of a time, in Unix milliseconds.
func ApplyRange(file *os.File, part io.Reader, first, last uint64, at int64) error {
	return apply(file, part, func(h ltx.Header) error {
		if uint64(h.MinTXID) != first || uint64(h.MaxTXID) != last {
			return fmt.Errorf("it has the transactions %d to %d, not %d to %d", h.MinTXID, h.MaxTXID, first, last)
		}
		if h.Timestamp != at {
			return fmt.Errorf(
				"it is of %s, not of %s",
				time.UnixMilli(h.Timestamp).UTC(),
				time.UnixMilli(at).UTC(),
			)
		}
		return nil
	})
}

func apply(file *os.File, part io.Reader, check func(ltx.Header) error) error {
	dec := ltx.NewDecoder(part)
	dec.SetRetainPageIndex(false)
	if err := dec.DecodeHeader(); err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	header := dec.Header()
	if check != nil {
		if err := check(header); err != nil {
			return err
		}
	}
	page := make([]byte, header.PageSize)
	for {
		var p ltx.PageHeader
		if err := dec.DecodePage(&p, page); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read a page: %w", err)
		}
		if p.Pgno > header.Commit {
			return fmt.Errorf("page %d is after the end of the database", p.Pgno)
		}
		if _, err := file.WriteAt(page, int64(p.Pgno-1)*int64(header.PageSize)); err != nil {
			return err
		}
	}
	if err := dec.Close(); err != nil {
		return fmt.Errorf("the file is damaged: %w", err)
	}
	return file.Truncate(int64(header.Commit) * int64(header.PageSize))
}
