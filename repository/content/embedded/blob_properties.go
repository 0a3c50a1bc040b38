package embedded

import (
	"io"
	"net/http"
)

// setMetadata replaces the metadata of a blob.
func (a *Account) setMetadata(c *blobCall) (*blobResponse, error) {
	metadata, err := readMetadata(c.Request)
	if err != nil {
		return nil, err
	}
	return a.changeProperties(c, func(v *version) { v.Metadata = metadata })
}

// setProperties replaces the blob properties that are returned as headers. As on Azure, it removes properties that the
// request does not name.
func (a *Account) setProperties(c *blobCall) (*blobResponse, error) {
	given, err := readProperties(c.Request, false)
	if err != nil {
		return nil, err
	}
	if c.Header.Get("X-Ms-Blob-Content-Type") == "" {
		delete(given.Headers, "Content-Type")
	}
	if given.MD5, err = readOwnHash(c.Header, "X-Ms-Blob-Content-Md5"); err != nil {
		return nil, err
	}
	return a.changeProperties(c, func(v *version) { v.Headers, v.MD5, v.Copy = given.Headers, given.MD5, nil })
}

// changeProperties changes the properties of a blob. It fails if the blob is archived.
func (a *Account) changeProperties(c *blobCall, change func(*version)) (*blobResponse, error) {
	changed, err := a.changeVersion(c, newVersion{isSilent: true, needsContent: true}, change)
	if err != nil {
		return nil, err
	}
	resp := newChangedResponse(http.StatusOK, changed)
	resp.header.Set("X-Ms-Request-Server-Encrypted", "false")
	return resp, nil
}

// changeVersion publishes a version of the call's blob with unchanged content and changed properties. Because a blob is
// one file, it copies the content. The caller sets the options of n, and changeVersion sets the remaining fields.
func (a *Account) changeVersion(c *blobCall, n newVersion, change func(*version)) (*version, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	for {
		changed, err := a.tryChangeVersion(c, found, n, change)
		if err != errReplaced { //nolint:errorlint // never wrapped
			return changed, err
		}
	}
}

// tryChangeVersion makes one attempt to change the version. It fails with errReplaced if another request wrote the blob
// during the attempt.
func (a *Account) tryChangeVersion(c *blobCall, found *blobContainer, n newVersion, change func(*version)) (*version, error) {
	base, err := a.openBlocks(c.container, c.blob, found)
	if err != nil {
		return nil, err
	}
	if base == nil {
		return nil, blobNotFound()
	}
	defer func() { _ = base.content.Close() }() // no data can be lost, because the file is only read
	if err := c.conditions.checkChange(base.version); err != nil {
		return nil, err
	}
	if n.needsContent {
		if err := base.checkArchived(); err != nil {
			return nil, err
		}
	}
	v, d, err := a.copyVersion(c, base)
	if err != nil {
		return nil, err
	}
	change(v)
	n.version, n.content, n.base, n.check = v, d, base.version, c.conditions.checkChange
	return v, a.publishVersion(c, found, n)
}

// copyVersion returns a version with the properties of source, and a draft with the content of source.
func (a *Account) copyVersion(c *blobCall, source *openedBlocks) (*version, draftContent, error) {
	d, err := a.store.newDraft(source.size)
	if err != nil {
		return nil, nil, err
	}
	if err := copyContent(c, d, source); err != nil {
		d.discardDraft()
		return nil, nil, err
	}
	return &version{
		Headers: source.Headers, MD5: source.MD5, Metadata: source.Metadata, Copy: source.Copy,
		Tier: source.Tier, TierChanged: source.TierChanged,
		Blocks: encodeBlocks(source.list.blocks), BlocksLeftOut: source.list.isLeftOut,
	}, d, nil
}

func copyContent(c *blobCall, d draftContent, source *openedBlocks) error {
	if _, err := io.Copy(d, contextReader{c.Context(), io.NewSectionReader(source.content, 0, source.size)}); err != nil {
		if c.Context().Err() != nil {
			return errBroken
		}
		return err
	}
	return d.finishWriting()
}

// getMetadata responds to a GET or HEAD request for the metadata of a blob.
func (a *Account) getMetadata(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	v := found.findBlob(c.blob)
	if v == nil {
		return nil, blobNotFound()
	}
	if err := c.conditions.checkRead(v); err != nil {
		return nil, err
	}
	resp := newResponse(http.StatusOK)
	v.setProperties(resp.header)
	return resp, nil
}
