package embedded

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
)

const (
	maxBlockID   = 64      // maximum length of a decoded block id, in bytes
	maxBlockList = 50_000  // maximum number of blocks in a list
	maxListBytes = 8 << 20 // maximum size of the XML of a list, in bytes
)

// putBlock stores a block until it is committed.
func (a *Account) putBlock(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	id, err := readBlockID(c.query.Get("blockid"))
	if err != nil {
		return nil, err
	}
	if c.ContentLength == 0 {
		return nil, newBlobError(400, "InvalidHeaderValue", "a block cannot be empty")
	}
	claimed, err := readClaims(c.Header, "X-Ms-Content-Crc64", "Content-Md5")
	if err != nil {
		return nil, err
	}
	reserved := max(c.ContentLength, 0)
	if err := a.uploads.reserveBytes(reserved); err != nil {
		return nil, err
	}
	sums := newChecksums()
	d, n, err := a.receiveBody(c, sums, claimed)
	if err == nil {
		if err = a.uploads.addBlock(found.uploadKey(c.blob), id, stagedBlock{draftContent: d, size: n}); err != nil {
			d.discardDraft()
		}
	}
	if err != nil {
		a.uploads.cancelReservation(reserved)
		return nil, err
	}
	resp := newResponse(http.StatusCreated)
	resp.header.Set("Content-Md5", sums.encodedMD5())
	resp.header.Set("X-Ms-Content-Crc64", sums.encodedCRC64())
	resp.header.Set("X-Ms-Request-Server-Encrypted", "false")
	return resp, nil
}

// readBlockID decodes a block id.
func readBlockID(text string) (string, error) {
	id, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(id) == 0 || len(id) > maxBlockID {
		return "", newBlobError(400, "InvalidQueryParameterValue", "block id %.100q: want 1 to %d bytes in base64", text, maxBlockID)
	}
	return string(id), nil
}

// putBlockList commits the blocks in a list as the content of a blob.
func (a *Account) putBlockList(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	v, err := readProperties(c.Request, false)
	if err != nil {
		return nil, err
	}
	if v.MD5, err = readMD5(c.Header, "X-Ms-Blob-Content-Md5"); err != nil {
		return nil, err
	}
	if err := a.applyTier(v, c.Header); err != nil {
		return nil, err
	}
	listed, err := readBlockList(c)
	if err != nil {
		return nil, err
	}
	if err := c.conditions.checkWrite(found.findBlob(c.blob)); err != nil {
		return nil, err
	}
	var resp *blobResponse
	err = a.uploads.commitBlocks(found.uploadKey(c.blob), func(staged map[string]stagedBlock) error {
		for {
			resp, err = a.commitListed(c, found, v, listed, staged)
			if !errors.Is(err, errReplaced) {
				return err
			}
		}
	})
	return resp, err
}

// commitListed writes the listed blocks as the content of v. If the list names committed blocks and another request
// replaces their version meanwhile, it fails with errReplaced.
func (a *Account) commitListed(c *blobCall, found *blobContainer, v *version, listed []listedBlock, staged map[string]stagedBlock) (*blobResponse, error) {
	source := blockSource{staged: staged}
	if source.hasMissing(listed) {
		base, err := a.openBlocks(c.container, c.blob, found)
		if err != nil {
			return nil, err
		}
		if base != nil {
			defer func() { _ = base.content.Close() }() // no data can be lost, because the file is only read
			if err := base.checkArchived(); err != nil {
				return nil, err
			}
			source.base = base
		}
	}
	blocks, err := source.locate(listed)
	if err != nil {
		return nil, err
	}
	d, err := a.assembleBlocks(c, blocks)
	if err != nil {
		return nil, err
	}
	committed := make([]committedBlock, len(blocks))
	for i, b := range blocks {
		committed[i] = committedBlock{id: b.id, size: b.size}
	}
	v.Blocks, v.BlocksLeftOut = encodeBlocks(committed), false
	var base *version
	if source.base != nil {
		base = source.base.version
	}
	return a.respondToWrite(c, found, newVersion{version: v, content: d, base: base, check: c.conditions.checkWrite})
}

// readBlockList parses the list of blocks in the body, one block at a time, so that a list with too many blocks cannot
// use much memory.
func readBlockList(c *blobCall) (listed []listedBlock, err error) {
	if c.ContentLength > maxListBytes {
		return nil, newBlobError(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "the list of blocks has more than %d bytes", maxListBytes)
	}
	claimed, err := readClaims(c.Header, "X-Ms-Content-Crc64", "Content-Md5")
	if err != nil {
		return nil, err
	}
	sums := newChecksums()
	body := io.TeeReader(io.LimitReader(contextReader{c.Context(), c.Body}, maxListBytes), sums)
	if listed, err = parseBlockList(xml.NewDecoder(body)); err != nil || claimed.isEmpty() {
		return listed, err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return nil, errBroken
	}
	return listed, claimed.verify(sums)
}

func parseBlockList(document *xml.Decoder) (listed []listedBlock, err error) {
	unreadable := newBlobError(400, "InvalidXmlDocument", "the list of blocks cannot be read")
	for inside := false; ; {
		token, err := document.Token()
		if err != nil {
			return nil, unreadable
		}
		switch element := token.(type) {
		case xml.StartElement:
			if !inside {
				if inside = element.Name.Local == "BlockList"; !inside {
					return nil, unreadable
				}
				continue
			}
			if len(listed) == maxBlockList {
				return nil, newBlobError(400, "BlockListTooLong", "the list has more than %d blocks", maxBlockList)
			}
			block, err := readListedBlock(document, &element)
			if err != nil {
				return nil, err
			}
			listed = append(listed, block)
		case xml.EndElement:
			return listed, nil
		}
	}
}

// A listedBlock is one entry in the body of a Put Block List request.
type listedBlock struct {
	from string // Latest, Uncommitted or Committed
	id   string // decoded block id
}

// readListedBlock parses an element of a block list.
func readListedBlock(document *xml.Decoder, element *xml.StartElement) (listedBlock, error) {
	switch element.Name.Local {
	case "Latest", "Uncommitted", "Committed":
	default:
		return listedBlock{}, newBlobError(400, "InvalidXmlNodeValue", "the list of blocks has an element %.40q", element.Name.Local)
	}
	var text string
	if err := document.DecodeElement(&text, element); err != nil {
		return listedBlock{}, newBlobError(400, "InvalidXmlDocument", "the list of blocks cannot be read")
	}
	id, err := readBlockID(strings.TrimSpace(text))
	if err != nil {
		return listedBlock{}, newBlobError(400, "InvalidBlockId", "%s", err)
	}
	return listedBlock{element.Name.Local, id}, nil
}

// assembleBlocks writes the contents of blocks to a draft, one after the other.
func (a *Account) assembleBlocks(c *blobCall, blocks []locatedBlock) (_ draftContent, err error) {
	var total int64
	for _, b := range blocks {
		total += b.size
	}
	if total > a.options.MaxBlob {
		return nil, newBlobError(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "the blob would have %d bytes, more than %d", total, a.options.MaxBlob)
	}
	d, err := a.store.newDraft(total)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.discardDraft()
		}
	}()
	for _, b := range blocks {
		if err := c.Context().Err(); err != nil {
			return nil, errBroken
		}
		if err := b.copyTo(d); err != nil {
			return nil, err
		}
	}
	return d, d.finishWriting()
}
