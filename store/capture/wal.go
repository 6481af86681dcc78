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

// Sizes of the -wal's parts, in bytes, and the magic number in its header without
// the lowest bit, which is set when checksums are of big-endian words
// (https://www.sqlite.org/fileformat2.html#walformat).
const (
	walHeader   = 32
	frameHeader = 24
	walMagic    = 0x377f0682
)

// walPosition is a place in a -wal: behind a frame that ends a commit.
type walPosition struct {
	salt   [8]byte   // of the -wal's header; zero: before the first frame of the next one
	offset int64     // bytes
	sum    [2]uint32 // the checksum up to there
}

// frame is where a page lies in the -wal.
type frame struct {
	page   uint32
	offset int64 // of the page's content
}

// span is what was committed behind a position.
type span struct {
	frames []frame
	size   uint32 // of the database after it, in pages
	end    walPosition
}

var errMany = errors.New("one commit changed more than is captured at a time")

// wal reads the -wal of one database.
type wal struct {
	file     *os.File
	pageSize int64
	salt     [8]byte
	start    [2]uint32 // the checksum of its header
	order    binary.ByteOrder
}

// openWAL opens the -wal of the database at path. It is nil when that has none, or
// an empty one.
func openWAL(path string) (*wal, error) {
	file, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	w := &wal{file: file}
	if err := w.readHeader(); err != nil {
		_ = file.Close()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	return w, nil
}

func (w *wal) readHeader() error {
	var h [walHeader]byte
	if _, err := w.file.ReadAt(h[:], 0); err != nil {
		return err
	}
	magic := binary.BigEndian.Uint32(h[:])
	w.order = binary.LittleEndian
	if magic&1 != 0 {
		w.order = binary.BigEndian
	}
	w.start = w.checksum([2]uint32{}, h[:24])
	if magic&^1 != walMagic || w.start != sumAt(h[24:]) {
		return errors.New("the -wal has no valid header")
	}
	w.pageSize = int64(binary.BigEndian.Uint32(h[8:]))
	w.salt = [8]byte(h[16:24])
	return nil
}

func (w *wal) close() { _ = w.file.Close() }

func (w *wal) frameSize() int64 { return frameHeader + w.pageSize }

// begin returns the place before the first frame.
func (w *wal) begin() walPosition {
	return walPosition{salt: w.salt, offset: walHeader, sum: w.start}
}

// behind returns the place behind the first n frames.
func (w *wal) behind(n int64) (walPosition, error) {
	p := w.begin()
	if n == 0 {
		return p, nil
	}
	p.offset += n * w.frameSize()
	var h [frameHeader]byte
	if _, err := w.file.ReadAt(h[:], p.offset-w.frameSize()); err != nil {
		return p, err
	}
	if [8]byte(h[8:16]) != w.salt {
		return p, errors.New("the -wal ends before its last frame")
	}
	p.sum = sumAt(h[16:])
	return p, nil
}

// readFrames is how many frames are read at a time.
const readFrames = 16

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// read returns what was committed behind p, at most limit frames of it.
func (w *wal) read(p walPosition, limit int) (span, error) {
	kept := buffers.Get().(*[]byte)
	defer buffers.Put(kept)
	if int64(cap(*kept)) < readFrames*w.frameSize() {
		*kept = make([]byte, readFrames*w.frameSize())
	}
	s := span{end: p}
	var open []frame // of a commit that has not ended
	for {
		n, err := w.file.ReadAt((*kept)[:readFrames*w.frameSize()], p.offset)
		if err != nil && err != io.EOF {
			return s, err
		}
		block := (*kept)[:n]
		for int64(len(block)) >= w.frameSize() {
			raw := block[:w.frameSize()]
			sum := w.checksum(w.checksum(p.sum, raw[:8]), raw[frameHeader:])
			if [8]byte(raw[8:16]) != w.salt || sum != sumAt(raw[16:]) {
				return s, nil // what lies here is older
			}
			open = append(open, frame{binary.BigEndian.Uint32(raw), p.offset + frameHeader})
			p.offset, p.sum = p.offset+w.frameSize(), sum
			if size := binary.BigEndian.Uint32(raw[4:]); size > 0 {
				s.frames, s.size, s.end, open = append(s.frames, open...), size, p, open[:0]
			}
			if len(s.frames)+len(open) > limit {
				return s, errMany
			}
			block = block[w.frameSize():]
		}
		if int64(n) < readFrames*w.frameSize() {
			return s, nil
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

// checksum continues a checksum over b, whose length is a multiple of 8.
func (w *wal) checksum(sum [2]uint32, b []byte) [2]uint32 {
	s0, s1 := sum[0], sum[1]
	if w.order == binary.LittleEndian { // nearly always: written on such a machine
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
