package diskcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/vfs"
)

const segmentPrefix = "pages-"

func segmentName(number uint32) string { return fmt.Sprintf("%s%08x", segmentPrefix, number) }

// segmentNumber returns the number of a segment with a base name.
func segmentNumber(name string) (number uint32, ok bool) {
	digits, ok := strings.CutPrefix(name, segmentPrefix)
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), ok && err == nil && segmentName(uint32(n)) == name
}

// A segment is a file with pages.
type segment struct {
	number uint32
	name   string
	file   vfs.ReadFile
	size   int64        // bytes, with the index that it will have
	pages  []listedPage // all that were written, in order
}

// onDisk is what a segment takes of the capacity.
func (s *segment) onDisk() int64 { return s.size + fileOverhead }

// page reads a page into buf, which is as long, and checks it. The data is buf's.
func (s *segment) page(at place, buf []byte) (pageKey, []byte, error) {
	if n, err := s.file.ReadAt(buf, int64(at.position)); n < len(buf) {
		if err == nil {
			err = io.EOF
		}
		return pageKey{}, nil, err
	}
	return decodePage(buf)
}

var errOtherSegment = errors.New("the file is no segment, or another")

// readPages finds the pages of a segment that was written before: by its index, else by going through them.
func (s *segment) readPages() error {
	var header [segmentHeader]byte
	if n, err := s.file.ReadAt(header[:], 0); n < len(header) && !errors.Is(err, io.EOF) {
		return err
	}
	if string(header[:8]) != segmentMagic || binary.LittleEndian.Uint64(header[8:]) != uint64(s.number) {
		return errOtherSegment
	}
	if s.readIndex() == nil {
		return nil
	}
	return s.walk()
}

// readIndex finds the pages by the index.
func (s *segment) readIndex() error {
	var trailer [indexTrailer]byte
	if s.size < segmentHeader+indexTrailer {
		return errIndex
	}
	if n, err := s.file.ReadAt(trailer[:], s.size-indexTrailer); n < len(trailer) {
		return err
	}
	length, err := decodeIndexTrailer(trailer[:], s.size)
	if err != nil {
		return err
	}
	index := make([]byte, length)
	if n, err := s.file.ReadAt(index, s.size-length); n < len(index) {
		return err
	}
	s.pages, err = decodeIndex(index, s.size)
	return err
}

// walk finds the pages one after the other, up to the first that is not whole.
func (s *segment) walk() error {
	s.pages = nil
	var header [pageHeader]byte
	for at := int64(segmentHeader); ; {
		if n, err := s.file.ReadAt(header[:], at); n < len(header) {
			return ignoreEOF(err)
		}
		length, err := decodePageHeader(header[:])
		if err != nil {
			return nil //nolint:nilerr // the pages end here
		}
		buf := pageBuffers.get(length)
		k, _, err := s.page(place{position: uint32(at), length: uint32(length)}, *buf)
		pageBuffers.put(buf)
		if errors.Is(err, errPageSum) || errors.Is(err, errPageHeader) {
			return nil
		}
		if err != nil {
			return ignoreEOF(err)
		}
		s.pages = append(s.pages, listedPage{k.hash(), uint32(at), uint32(length)})
		at += int64(length)
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
