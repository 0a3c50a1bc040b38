package engine

import (
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A Kind is the kind of operation, such as Create or Patch.
type Kind int

// The kinds of operations.
const (
	Create Kind = iota
	Upsert
	Replace
	Patch
	Delete
	Read
)

// An Op is one operation on one document.
type Op struct {
	Kind    Kind
	ID      string    // document id; unused by Create and Upsert
	Doc     Document  // document to write, for Create, Upsert and Replace
	Patch   *PatchDoc // only for Patch
	IfMatch string    // a quoted etag, * or empty; ignored by Create and Read
}

// A Result is the result of an Op.
type Result struct {
	Status  int
	Message string // reason, if the operation failed
	Charge  Charge
	ETag    string
	JSON    []byte // the document after the operation; must not be modified
}

// A WriteResult is the result of Write.
type WriteResult struct {
	Results []Result
	Failed  int    // index of the operation that made the batch fail, or -1
	Session uint64 // number of the newest write, which becomes the session token
	Charge  Charge
}

func failedResult(status int, charge Charge, message string) Result {
	return Result{Status: status, Charge: charge, Message: message}
}

func (w *writeTransaction) applyOp(op *Op) Result {
	r := w.dispatchOp(op)
	if w.e.committed != nil && op.Kind != Read && r.Status < 300 {
		id := op.ID
		if op.Kind == Create || op.Kind == Upsert {
			id = op.Doc.ID
		}
		w.changes = append(w.changes, Change{Database: w.c.Database, Container: w.c.ID, Partition: w.pk, ID: id, JSON: r.JSON})
	}
	return r
}

func (w *writeTransaction) dispatchOp(op *Op) Result {
	id := op.ID
	if op.Kind == Create || op.Kind == Upsert {
		id = op.Doc.ID
	}
	old, seq, exists, err := w.c.findDocument(w.tx, w.pk, id)
	if err != nil {
		w.broken = err
		return Result{}
	}
	if exists && w.c.hasExpired(old, w.now) {
		if _, err := old.readJSON(w.tx, w.c); err == nil { // skipped for a damaged document, whose time to live may be damaged, too
			w.removeDocument(id, old, seq)
			exists = false
		}
	}
	switch {
	case op.Kind == Create && exists:
		return failedResult(http.StatusConflict, refusedCharge(old.size), "a document with this id already exists")
	case !exists && op.Kind != Create && op.Kind != Upsert:
		return failedResult(http.StatusNotFound, chargeOfMiss, "no document has this id")
	}
	if op.IfMatch != "" && op.IfMatch != "*" && exists && op.Kind != Create && op.Kind != Read && op.IfMatch != w.e.formatETag(old.version) {
		return failedResult(http.StatusPreconditionFailed, refusedCharge(old.size), "the etag of the document is not the one in If-Match")
	}
	switch op.Kind {
	case Read:
		return w.readResult(old)
	case Delete:
		w.removeDocument(id, old, seq)
		return Result{Status: http.StatusNoContent, Charge: deleteCharge(old.size, old.terms)}
	case Patch:
		return w.patchDocument(op, old, seq)
	case Create, Upsert, Replace:
	}
	if !exists {
		return w.insertDocument(op.Doc)
	}
	return w.replaceDocument(old, seq, op.Doc)
}

func (w *writeTransaction) readResult(old storedDocument) Result {
	charge := readCharge(old.size)
	if w.double {
		charge *= 2
	}
	doc, err := old.readJSON(w.tx, w.c)
	if err != nil {
		w.broken = err
	}
	return Result{Status: http.StatusOK, Charge: charge, ETag: w.e.formatETag(old.version), JSON: slices.Clone(doc)}
}

func (w *writeTransaction) insertDocument(doc Document) Result {
	seq := w.version + 1
	entries := w.c.uniqueEntries(w.pk, doc.compactJSON())
	if isTaken(w.tx, entries, seq) {
		return uniqueViolation(len(doc.compactJSON()))
	}
	w.version++
	w.tx.Put(idKey(w.c.number, w.pk, doc.ID), appendNumber(seq))
	w.claimEntries(entries, seq)
	r := w.putDocument(doc, seq)
	r.Status, r.Charge = http.StatusCreated, createCharge(len(r.JSON), doc.terms)
	return r
}

func uniqueViolation(size int) Result {
	return failedResult(http.StatusConflict, refusedCharge(size), "Unique index constraint violation: another document of the partition has the same values")
}

func (w *writeTransaction) claimEntries(entries [][]byte, seq uint64) {
	for _, key := range entries {
		w.tx.Put(key, appendNumber(seq))
	}
}

func (w *writeTransaction) releaseEntries(entries [][]byte) {
	for _, key := range entries {
		w.tx.Delete(key)
	}
}

func (w *writeTransaction) replaceDocument(old storedDocument, seq uint64, doc Document) Result {
	before, err := old.readJSON(w.tx, w.c)
	if err != nil {
		w.broken = err
		return Result{}
	}
	entries := w.c.uniqueEntries(w.pk, doc.compactJSON())
	if isTaken(w.tx, entries, seq) {
		return uniqueViolation(old.size)
	}
	changed := 0
	if user := w.userPart(before, old.user); user != nil {
		changed = w.c.policy.changedTerms(user, doc.compactJSON())
	}
	w.releaseEntries(w.c.uniqueEntries(w.pk, before))
	w.claimEntries(entries, seq)
	w.removeVersion(old)
	w.version++
	r := w.putDocument(doc, seq)
	r.Status, r.Charge = http.StatusOK, replaceCharge(old.size, len(r.JSON), changed)
	return r
}

// removeVersion removes the index entries of one version of a document.
func (w *writeTransaction) removeVersion(old storedDocument) {
	w.tx.Delete(changeKey(w.c.number, old.version))
	if old.size > maxInlineSize {
		w.tx.Delete(blobKey(w.c.number, old.version))
	}
	w.grown -= int64(old.size)
}

// userPart returns a copy of the document without system properties. It returns nil if the policy indexes nothing.
func (w *writeTransaction) userPart(doc []byte, user int) []byte {
	if p := w.c.policy; p.none || p.root.below == excluded && len(p.root.next) == 0 {
		return nil
	}
	return append(append(make([]byte, 0, user+1), doc[:user]...), '}')
}

// putDocument stores a document as the current version. It reuses the memory of d.
func (w *writeTransaction) putDocument(d Document, seq uint64) Result {
	text := w.e.appendSystemProperties(w.c, d.text, seq, w.version, w.now)
	header, doc := text[:headerSize:headerSize], text[headerSize:]
	storedDocument{
		version: w.version, changed: w.now.Unix(), terms: d.terms, user: len(d.compactJSON()) - 1, size: len(doc), ttl: d.ttl,
	}.writeHeader(header, doc)
	if len(doc) > maxInlineSize {
		w.tx.Put(blobKey(w.c.number, w.version), doc)
		w.tx.Put(documentKey(w.c.number, w.pk, seq), header)
	} else {
		w.tx.Put(documentKey(w.c.number, w.pk, seq), text)
	}
	w.tx.Put(changeKey(w.c.number, w.version), append(appendNumber(seq), w.pk...))
	w.grown += int64(len(doc))
	return Result{ETag: w.e.formatETag(w.version), JSON: doc}
}

// removeDocument removes a document. It also removes a damaged one, which repairs the store.
func (w *writeTransaction) removeDocument(id string, old storedDocument, seq uint64) {
	if len(w.c.unique) > 0 {
		if doc, err := old.readJSON(w.tx, w.c); err == nil {
			w.releaseEntries(w.c.uniqueEntries(w.pk, doc))
		} else {
			w.releaseAllEntries(seq)
		}
	}
	w.version++
	w.tx.Delete(idKey(w.c.number, w.pk, id))
	w.tx.Delete(documentKey(w.c.number, w.pk, seq))
	w.removeVersion(old)
}

// releaseAllEntries releases the unique keys of a document that cannot be read. To find them, it scans the partition.
func (w *writeTransaction) releaseAllEntries(seq uint64) {
	var entries [][]byte
	prefix := partitionPrefix('U', w.c.number, w.pk)
	w.tx.Scan(prefix, endOfPrefix(prefix), func(key, owner []byte) bool {
		if decodeNumber(owner) == seq {
			entries = append(entries, slices.Clone(key))
		}
		return true
	})
	w.releaseEntries(entries)
}

func (w *writeTransaction) patchDocument(op *Op, old storedDocument, seq uint64) Result {
	before, err := old.readJSON(w.tx, w.c)
	if err != nil {
		w.broken = err
		return Result{}
	}
	holds, err := op.Patch.evaluateCondition(w.ctx, before)
	if err != nil {
		w.broken = err
		return Result{}
	}
	if !holds {
		return failedResult(http.StatusPreconditionFailed, refusedCharge(old.size), "the condition of the patch is not true of the document")
	}
	doc := append(append(make([]byte, 0, old.user+op.Patch.grows+systemPropertiesSize), before[:old.user]...), '}')
	doc, err = op.Patch.applyAll(doc, w.c)
	var ttl int32
	if err == nil {
		_, ttl, err = readIDAndTTL(doc)
	}
	if err != nil {
		return failedResult(http.StatusBadRequest, refusedCharge(old.size), err.Error())
	}
	if len(doc) > MaxItem {
		return failedResult(http.StatusRequestEntityTooLarge, refusedCharge(old.size), "the patched document is too large")
	}
	r := w.replaceDocument(old, seq, Document{text: append(newTextBuffer(len(doc)), doc...), terms: w.c.policy.countTerms(doc), ttl: ttl})
	if r.Status != http.StatusOK {
		return r
	}
	r.Charge += perPatch * Charge(len(op.Patch.operations))
	return r
}

// Read returns the document named id.
func (e *Engine) Read(c *Container, pk Partition, id string, consistency Consistency) (Result, uint64, error) {
	var r Result
	var session uint64
	now := e.expiryTime(c)
	err := e.viewState(consistency, func(reader disk.Reader) error {
		session = decodeNumber(reader.Get(counterKey))
		old, _, ok, err := c.findDocument(reader, pk, id)
		var doc []byte
		if ok {
			doc, err = old.readJSON(reader, c)
		}
		if err != nil {
			return err
		}
		if !ok || c.hasExpired(old, now) {
			r = failedResult(http.StatusNotFound, chargeOfMiss, "no document has this id")
			return nil
		}
		r = Result{Status: http.StatusOK, Charge: readCharge(old.size), ETag: e.formatETag(old.version), JSON: slices.Clone(doc)}
		return nil
	})
	if consistency.Double {
		r.Charge *= 2
	}
	return r, session, err
}
