package embedded

import (
	"crypto/md5" //nolint:gosec // required by the protocol
	"encoding/base64"
	"encoding/xml"
	"io"
	"net/http"
)

const (
	maxBlockID   = 64      // bytes, before base64
	maxBlockList = 50_000  // blocks
	maxListBytes = 8 << 20 // bytes of the document that lists blocks
)

// putBlock stores a block until it is committed.
func (a *Account) putBlock(c *blobCall) (*blobAnswer, error) {
	if _, err := a.findContainer(c); err != nil {
		return nil, err
	}
	id, err := readBlockID(c.query.Get("blockid"))
	if err != nil {
		return nil, err
	}
	if c.ContentLength == 0 {
		return nil, newBlobError(400, "InvalidHeaderValue", "a block cannot be empty")
	}
	reserved := max(c.ContentLength, 0)
	if err := a.uploads.reserveBytes(reserved); err != nil {
		return nil, err
	}
	sum := md5.New() //nolint:gosec // required by the protocol
	d, n, err := a.receiveBody(c, sum, "Content-Md5")
	if err == nil {
		if err = a.uploads.addBlock(c.blobName(), id, stagedBlock{draftContent: d, size: n}); err != nil {
			d.discardDraft()
		}
	}
	if err != nil {
		a.uploads.cancelReservation(reserved)
		return nil, err
	}
	answered := newAnswer(http.StatusCreated)
	answered.header.Set("Content-Md5", base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	answered.header.Set("X-Ms-Request-Server-Encrypted", "false")
	return answered, nil
}

// readBlockID decodes a block id.
func readBlockID(text string) (string, error) {
	id, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(id) == 0 || len(id) > maxBlockID {
		return "", newBlobError(400, "InvalidQueryParameterValue", "block id %.100q: want 1 to %d bytes in base64", text, maxBlockID)
	}
	return string(id), nil
}

// putBlockList commits blocks as the content of a blob, in the order of a list.
func (a *Account) putBlockList(c *blobCall) (*blobAnswer, error) {
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
	ids, err := readBlockList(c)
	if err != nil {
		return nil, err
	}
	if err := c.conditions.checkWrite(found.findBlob(c.blob)); err != nil {
		return nil, err
	}
	var answered *blobAnswer
	err = a.uploads.commitBlocks(c.blobName(), func(blocks map[string]stagedBlock) error {
		d, err := a.assembleBlocks(c, ids, blocks)
		if err != nil {
			return err
		}
		answered, err = a.publishVersion(c, found, v, d)
		return err
	})
	return answered, err
}

// readBlockList reads the ids in a document one at a time, so that a document with too many ids
// uses limited memory.
func readBlockList(c *blobCall) (ids []string, err error) {
	if c.ContentLength > maxListBytes {
		return nil, newBlobError(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "the list of blocks has more than %d bytes", maxListBytes)
	}
	unreadable := newBlobError(400, "InvalidXmlDocument", "the list of blocks cannot be read")
	document := xml.NewDecoder(io.LimitReader(contextReader{c.Context(), c.Body}, maxListBytes))
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
			if len(ids) == maxBlockList {
				return nil, newBlobError(400, "BlockListTooLong", "the list has more than %d blocks", maxBlockList)
			}
			id, err := listedBlock(document, &element)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		case xml.EndElement:
			return ids, nil
		}
	}
}

// listedBlock returns the id in an element of a list.
func listedBlock(document *xml.Decoder, element *xml.StartElement) (string, error) {
	switch element.Name.Local {
	case "Latest", "Uncommitted":
	case "Committed":
		return "", notImplemented("blocks of a blob that has been written")
	default:
		return "", newBlobError(400, "InvalidXmlNodeValue", "the list of blocks has an element %.40q", element.Name.Local)
	}
	var text string
	if err := document.DecodeElement(&text, element); err != nil {
		return "", newBlobError(400, "InvalidXmlDocument", "the list of blocks cannot be read")
	}
	id, err := readBlockID(text)
	if err != nil {
		return "", newBlobError(400, "InvalidBlockId", "%s", err)
	}
	return id, nil
}

// assembleBlocks concatenates the blocks with these ids to a draft.
func (a *Account) assembleBlocks(c *blobCall, ids []string, blocks map[string]stagedBlock) (_ draftContent, err error) {
	var total int64
	for _, id := range ids {
		b, ok := blocks[id]
		if !ok {
			return nil, newBlobError(400, "InvalidBlockList", "a block of the list has not been put since the blob was last written")
		}
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
	for _, id := range ids {
		if err := c.Context().Err(); err != nil {
			return nil, errBroken
		}
		if err := blocks[id].copyTo(d); err != nil {
			return nil, err
		}
	}
	return d, d.finishWriting()
}

func (b stagedBlock) copyTo(d draftContent) error {
	r, err := b.openDraft()
	if err != nil {
		return err
	}
	_, err = io.Copy(d, io.NewSectionReader(r, 0, b.size))
	_ = r.Close() // read-only: no data can be lost
	return err
}
