package embedded

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// A committedBlock is one of the blocks from which a blob was committed.
type committedBlock struct {
	id           string // decoded block id
	offset, size int64
}

// A blockList lists the blocks of a blob. It is empty if the blob was written with a single request. isLeftOut is true
// if the list was too long to be stored.
type blockList struct {
	blocks    []committedBlock
	isLeftOut bool
}

// encodeBlocks encodes a list: the common length of the ids, then the id and size of each block.
func encodeBlocks(blocks []committedBlock) []byte {
	if len(blocks) == 0 {
		return nil
	}
	stored := binary.AppendUvarint(nil, uint64(len(blocks[0].id)))
	for _, b := range blocks {
		stored = append(stored, b.id...)
		stored = binary.AppendUvarint(stored, uint64(b.size)) //nolint:gosec // never negative
	}
	return stored
}

// decodeBlocks decodes a list that encodeBlocks has encoded. size is the size of the blob.
func decodeBlocks(stored []byte, size int64) ([]committedBlock, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	damaged := errors.New("the stored list of blocks does not fit the content")
	length, n := binary.Uvarint(stored)
	if n <= 0 || length == 0 || length > maxBlockID {
		return nil, damaged
	}
	stored = stored[n:]
	var blocks []committedBlock
	var offset int64
	for len(stored) > 0 {
		if uint64(len(stored)) <= length {
			return nil, damaged
		}
		id := string(stored[:length])
		blockSize, n := binary.Uvarint(stored[length:])
		if n <= 0 || blockSize > uint64(size-offset) { //nolint:gosec // offset is at most size
			return nil, damaged
		}
		blocks = append(blocks, committedBlock{id: id, offset: offset, size: int64(blockSize)}) //nolint:gosec // at most size
		offset += int64(blockSize)                                                              //nolint:gosec // at most size
		stored = stored[length+uint64(n):]
	}
	if offset != size {
		return nil, damaged
	}
	return blocks, nil
}

// listOf returns the block list of a loaded version.
func listOf(v *version) (blockList, error) {
	blocks, err := decodeBlocks(v.Blocks, v.size)
	return blockList{blocks, v.BlocksLeftOut}, err
}

// openedBlocks is a version of a blob with its committed blocks. Its content is open.
type openedBlocks struct {
	*version
	list    blockList
	content blobContent
}

// openBlocks opens the current version of a blob. It returns nil if there is no blob.
func (a *Account) openBlocks(container, blob string, found *blobContainer) (*openedBlocks, error) {
	unlock, err := found.lockBlobToRead(blob)
	if err != nil {
		return nil, err
	}
	defer unlock()
	v := found.findBlob(blob)
	if v == nil {
		return nil, nil //nolint:nilnil // a missing blob is not a failure
	}
	list, err := a.store.readBlocks(container, v)
	if err != nil {
		return nil, err
	}
	content, err := a.store.openContent(container, v)
	return &openedBlocks{v, list, content}, err
}

// A blockSource contains the blocks that a list may name.
type blockSource struct {
	staged map[string]stagedBlock
	base   *openedBlocks // version with the committed blocks; nil if the list names none
}

// hasMissing reports whether a list names a block that is not staged.
func (s blockSource) hasMissing(listed []listedBlock) bool {
	return slices.ContainsFunc(listed, func(b listedBlock) bool {
		_, ok := s.staged[b.id]
		return !ok || b.from == "Committed"
	})
}

// A locatedBlock tells where the content of a block is.
type locatedBlock struct {
	committedBlock
	staged stagedBlock // content of the block, if base is nil
	base   blobContent // content of the version that contains the block; nil for a staged block
}

// locate finds the blocks that a list names.
func (s blockSource) locate(listed []listedBlock) ([]locatedBlock, error) {
	committed := map[string]committedBlock{}
	isLeftOut := false
	if s.base != nil {
		isLeftOut = s.base.list.isLeftOut
		for _, b := range s.base.list.blocks {
			committed[b.id] = b
		}
	}
	blocks := make([]locatedBlock, 0, len(listed))
	for _, want := range listed {
		staged, isStaged := s.staged[want.id]
		old, isCommitted := committed[want.id]
		switch {
		case len(want.id) != len(listed[0].id):
			return nil, newBlobError(400, "InvalidBlobOrBlock", "the block ids of a blob all have one length")
		case isStaged && want.from != "Committed":
			blocks = append(blocks, locatedBlock{committedBlock: committedBlock{id: want.id, size: staged.size}, staged: staged})
		case isCommitted && want.from != "Uncommitted":
			blocks = append(blocks, locatedBlock{committedBlock: old, base: s.base.content})
		case isLeftOut && want.from != "Uncommitted":
			return nil, notImplemented("committed blocks of a blob that has too many of them: about 1000, by the length of their ids")
		default:
			return nil, newBlobError(400, "InvalidBlockList", "the list names a block, as %s, that the blob does not have", want.from)
		}
	}
	return blocks, nil
}

func (b locatedBlock) copyTo(d draftContent) error {
	if b.base != nil {
		_, err := io.Copy(d, io.NewSectionReader(b.base, b.offset, b.size))
		return err
	}
	r, err := b.staged.openDraft()
	if err != nil {
		return err
	}
	_, err = io.Copy(d, io.NewSectionReader(r, 0, b.size))
	_ = r.Close() // no data can be lost, because the file is only read
	return err
}

// getBlockList returns the committed and uncommitted blocks of a blob.
func (a *Account) getBlockList(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	kind := cmp.Or(c.query.Get("blocklisttype"), "committed")
	if !slices.Contains([]string{"committed", "uncommitted", "all"}, kind) {
		return nil, newBlobError(400, "InvalidQueryParameterValue", "blocklisttype %.40q: want committed, uncommitted or all", kind)
	}
	type block struct {
		Name string
		Size int64
	}
	var document struct {
		XMLName     xml.Name `xml:"BlockList"`
		Committed   []block  `xml:"CommittedBlocks>Block"`
		Uncommitted []block  `xml:"UncommittedBlocks>Block"`
	}
	staged := a.uploads.listBlocks(found.uploadKey(c.blob))
	opened, err := a.openBlocks(c.container, c.blob, found)
	switch {
	case err != nil:
		return nil, err
	case opened == nil && len(staged) == 0:
		return nil, blobNotFound()
	case opened != nil:
		_ = opened.content.Close() // the content is not needed
		if err := c.conditions.checkRead(opened.version); err != nil {
			return nil, err
		}
	}
	if opened != nil && kind != "uncommitted" {
		if opened.list.isLeftOut {
			return nil, notImplemented("lists of more than about 1000 committed blocks")
		}
		for _, b := range opened.list.blocks {
			document.Committed = append(document.Committed, block{base64.StdEncoding.EncodeToString([]byte(b.id)), b.size})
		}
	}
	if kind != "committed" {
		for _, b := range staged {
			document.Uncommitted = append(document.Uncommitted, block{base64.StdEncoding.EncodeToString([]byte(b.id)), b.size})
		}
	}
	resp, err := newXMLResponse(http.StatusOK, document)
	if err == nil && opened != nil {
		resp.header.Set("ETag", opened.ETag)
		resp.header.Set("Last-Modified", opened.Modified.UTC().Format(http.TimeFormat))
		resp.header.Set("X-Ms-Blob-Content-Length", strconv.FormatInt(opened.size, 10))
	}
	return resp, err
}
