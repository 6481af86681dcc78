package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// Sizes of the parts of a -wal, in bytes, and the magic number in its header without
// the lowest bit, which is set if checksums use big-endian words
// (https://www.sqlite.org/fileformat2.html#walformat).
const (
	walHeader   = 32
	frameHeader = 24
	walMagic    = 0x377f0682
)

// WALPosition is a position in a -wal: after a frame that ends a commit. The zero
// value is before the first frame of any -wal.
type WALPosition struct {
	Salt   uint64    `json:"salt"`   // from the -wal's header, different for each
	Offset int64     `json:"offset"` // bytes
	Sum    [2]uint32 `json:"sum"`    // checksum of everything before it
}

// frame is the location of a page in the -wal.
type frame struct {
	page   uint32
	offset int64 // of the page's content
}

// span is what was committed after a position.
type span struct {
	frames []frame
	size   uint32 // of the database after it, in pages
	end    WALPosition
	more   bool // there are more commits than requested
}

var (
	errTooLarge = errors.New("a single commit changed more than can be captured at a time")
	errHeader   = errors.New("the -wal has no valid header")
)

// wal reads the -wal of one database.
type wal struct {
	file     *os.File
	pageSize int64
	salt     uint64
	start    [2]uint32 // the checksum of its header
	order    binary.ByteOrder
}

// openWAL opens the -wal of the database at path. It returns nil if there is none,
// or an empty one.
func openWAL(path string) (*wal, error) {
	file, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	w := &wal{file: file}
	err = w.readHeader()
	if errors.Is(err, errHeader) { // it may be in the middle of being written
		err = w.readHeader()
	}
	if err != nil {
		_ = file.Close()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	return w, nil
}

func (w *wal) readHeader() error {
	var hash [walHeader]byte
	if _, err := w.file.ReadAt(hash[:], 0); err != nil {
		return err
	}
	magic := binary.BigEndian.Uint32(hash[:])
	w.order = binary.LittleEndian
	if magic&1 != 0 {
		w.order = binary.BigEndian
	}
	w.start = w.checksum([2]uint32{}, hash[:24])
	if magic&^1 != walMagic || w.start != sumAt(hash[24:]) {
		return errHeader
	}
	w.pageSize = int64(binary.BigEndian.Uint32(hash[8:]))
	w.salt = binary.BigEndian.Uint64(hash[16:])
	return nil
}

func (w *wal) close() { _ = w.file.Close() }

func (w *wal) frameSize() int64 { return frameHeader + w.pageSize }

// begin returns the position before the first frame.
func (w *wal) begin() WALPosition {
	return WALPosition{Salt: w.salt, Offset: walHeader, Sum: w.start}
}

// positionAfter returns the position after the first n frames.
func (w *wal) positionAfter(n int64) (WALPosition, error) {
	p := w.begin()
	if n == 0 {
		return p, nil
	}
	p.Offset += n * w.frameSize()
	var h [frameHeader]byte
	if _, err := w.file.ReadAt(h[:], p.Offset-w.frameSize()); err != nil {
		return p, err
	}
	if binary.BigEndian.Uint64(h[8:]) != w.salt {
		return p, errors.New("the -wal ends before its last frame")
	}
	p.Sum = sumAt(h[16:])
	return p, nil
}

// readFrames is how many frames are read at a time.
const readFrames = 16

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// read returns what was committed after position: commits with at most limit frames in
// total. If a single commit has more, the error is errTooLarge.
func (w *wal) read(position WALPosition, limit int) (span span, err error) {
	span.end = position
	var open []frame // of an incomplete commit
	many := false
	err = w.walk(position, func(raw []byte, end WALPosition) (more bool) {
		open = append(open, frame{binary.BigEndian.Uint32(raw), end.Offset - w.pageSize})
		if many = len(span.frames)+len(open) > limit; many {
			return false
		}
		if size := binary.BigEndian.Uint32(raw[4:]); size > 0 {
			span.frames, span.size, span.end, open = append(span.frames, open...), size, end, open[:0]
		}
		return true
	})
	if span.more = many; many && len(span.frames) == 0 {
		return span, errTooLarge
	}
	return span, err
}

// contains reports whether a frame ends at p and everything before it is unchanged.
func (w *wal) contains(p WALPosition) (found bool) {
	err := w.walk(w.begin(), func(_ []byte, end WALPosition) (more bool) {
		found = end == p
		return end.Offset < p.Offset
	})
	return err == nil && found
}

// walk calls visit with each valid frame after position and the position where it ends,
// until visit returns false.
func (w *wal) walk(position WALPosition, visit func(raw []byte, end WALPosition) (more bool)) error {
	kept := buffers.Get().(*[]byte)
	defer buffers.Put(kept)
	if int64(cap(*kept)) < readFrames*w.frameSize() {
		*kept = make([]byte, readFrames*w.frameSize())
	}
	for {
		read, err := w.file.ReadAt((*kept)[:readFrames*w.frameSize()], position.Offset)
		if err != nil && err != io.EOF {
			return err
		}
		block := (*kept)[:read]
		for int64(len(block)) >= w.frameSize() {
			raw := block[:w.frameSize()]
			sum := w.checksum(w.checksum(position.Sum, raw[:8]), raw[frameHeader:])
			if binary.BigEndian.Uint64(raw[8:]) != w.salt || sum != sumAt(raw[16:]) {
				return nil // the following frames are older
			}
			position.Offset, position.Sum = position.Offset+w.frameSize(), sum
			if !visit(raw, position) {
				return nil
			}
			block = block[w.frameSize():]
		}
		if int64(read) < readFrames*w.frameSize() {
			return nil
		}
	}
}

// page reads a page's content into b.
func (w *wal) page(f frame, b []byte) error {
	if _, err := w.file.ReadAt(b, f.offset); err != nil {
		return fmt.Errorf("read the -wal: %w", err)
	}
	return nil
}

// checksum continues a checksum with b, whose length is a multiple of 8.
func (w *wal) checksum(sum [2]uint32, b []byte) [2]uint32 {
	s0, s1 := sum[0], sum[1]
	if w.order == binary.LittleEndian { // nearly always
		for ; len(b) >= 8; b = b[8:] {
			s0 += binary.LittleEndian.Uint32(b) + s1
			s1 += binary.LittleEndian.Uint32(b[4:]) + s0
		}
		return [2]uint32{s0, s1}
	}
	for ; len(b) >= 8; b = b[8:] {
		s0 += w.order.Uint32(b) + s1
		s1 += w.order.Uint32(b[4:]) + s0
	}
	return [2]uint32{s0, s1}
}

func sumAt(b []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}
