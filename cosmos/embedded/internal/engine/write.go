package engine

import (
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A Kind is what an Op does.
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
	ID      string    // but for Create and Upsert
	Doc     Document  // of Create, Upsert, Replace
	Patch   *PatchDoc // of Patch
	IfMatch string    // an etag with its quotes, * or nothing; Create and Read ignore it
}

// A Result is what became of an Op.
type Result struct {
	Status  int
	Message string // of a failure
	Charge  Charge
	ETag    string
	JSON    []byte // the document, as it is now; must not be changed
}

// A Written is the outcome of Write.
type Written struct {
	Results []Result
	Failed  int    // index of the operation that stopped the others, -1 if none
	Session uint64 // number of the newest write, for the session token
	Charge  Charge
}

func failure(status int, charge Charge, message string) Result {
	return Result{Status: status, Charge: charge, Message: message}
}

func (w *writer) do(op *Op) Result {
	r := w.carryOut(op)
	if w.e.tell != nil && op.Kind != Read && r.Status < 300 {
		id := op.ID
		if op.Kind == Create || op.Kind == Upsert {
			id = op.Doc.ID
		}
		w.changes = append(w.changes, Change{Database: w.c.Database, Container: w.c.ID, Partition: w.pk, ID: id, JSON: r.JSON})
	}
	return r
}

func (w *writer) carryOut(op *Op) Result {
	id := op.ID
	if op.Kind == Create || op.Kind == Upsert {
		id = op.Doc.ID
	}
	old, seq, exists, err := w.c.find(w.tx, w.pk, id)
	if err != nil {
		w.broken = err
		return Result{}
	}
	if exists && w.c.expired(old, w.now) {
		if _, err := old.json(w.tx, w.c); err == nil { // if it is damaged, its time may be as well
			w.remove(id, old, seq)
			exists = false
		}
	}
	switch {
	case op.Kind == Create && exists:
		return failure(http.StatusConflict, refusedCharge(old.size), "a document with this id already exists")
	case !exists && op.Kind != Create && op.Kind != Upsert:
		return failure(http.StatusNotFound, chargeOfMiss, "no document has this id")
	}
	if op.IfMatch != "" && op.IfMatch != "*" && exists && op.Kind != Create && op.Kind != Read && op.IfMatch != w.e.etag(old.version) {
		return failure(http.StatusPreconditionFailed, refusedCharge(old.size), "the etag of the document is not the one in If-Match")
	}
	switch op.Kind {
	case Read:
		return w.read(old)
	case Delete:
		w.remove(id, old, seq)
		return Result{Status: http.StatusNoContent, Charge: deleteCharge(old.size, old.terms)}
	case Patch:
		return w.patch(op, old, seq)
	case Create, Upsert, Replace:
	}
	if !exists {
		return w.insert(op.Doc)
	}
	return w.replace(old, seq, op.Doc)
}

func (w *writer) read(old stored) Result {
	charge := readCharge(old.size)
	if w.double {
		charge *= 2
	}
	doc, err := old.json(w.tx, w.c)
	if err != nil {
		w.broken = err
	}
	return Result{Status: http.StatusOK, Charge: charge, ETag: w.e.etag(old.version), JSON: slices.Clone(doc)}
}

func (w *writer) insert(doc Document) Result {
	seq := w.version + 1
	entries := w.c.uniqueEntries(w.pk, doc.json())
	if taken(w.tx, entries, seq) {
		return uniqueViolation(len(doc.json()))
	}
	w.version++
	w.tx.Put(idKey(w.c.number, w.pk, doc.ID), appendNumber(seq))
	w.claim(entries, seq)
	r := w.put(doc, seq)
	r.Status, r.Charge = http.StatusCreated, createCharge(len(r.JSON), doc.terms)
	return r
}

func uniqueViolation(size int) Result {
	return failure(http.StatusConflict, refusedCharge(size), "Unique index constraint violation: another document of the partition has the same values")
}

func (w *writer) claim(entries [][]byte, seq uint64) {
	for _, key := range entries {
		w.tx.Put(key, appendNumber(seq))
	}
}

func (w *writer) release(entries [][]byte) {
	for _, key := range entries {
		w.tx.Delete(key)
	}
}

func (w *writer) replace(old stored, seq uint64, doc Document) Result {
	before, err := old.json(w.tx, w.c)
	if err != nil {
		w.broken = err
		return Result{}
	}
	entries := w.c.uniqueEntries(w.pk, doc.json())
	if taken(w.tx, entries, seq) {
		return uniqueViolation(old.size)
	}
	changed := 0
	if user := w.userPart(before, old.user); user != nil {
		changed = w.c.policy.changedTerms(user, doc.json())
	}
	w.release(w.c.uniqueEntries(w.pk, before))
	w.claim(entries, seq)
	w.forget(old)
	w.version++
	r := w.put(doc, seq)
	r.Status, r.Charge = http.StatusOK, replaceCharge(old.size, len(r.JSON), changed)
	return r
}

// forget removes what belongs to one version of a document.
func (w *writer) forget(old stored) {
	w.tx.Delete(changeKey(w.c.number, old.version))
	if old.size > inline {
		w.tx.Delete(blobKey(w.c.number, old.version))
	}
	w.grown -= int64(old.size)
}

// userPart returns a copy of the document without its system properties. It
// returns nil if the policy has no terms to compare.
func (w *writer) userPart(doc []byte, user int) []byte {
	if p := w.c.policy; p.none || p.root.below == excluded && len(p.root.next) == 0 {
		return nil
	}
	return append(append(make([]byte, 0, user+1), doc[:user]...), '}')
}

// put stores a document, whose text it takes over, under the current version.
func (w *writer) put(d Document, seq uint64) Result {
	text := w.e.finished(w.c, d.text, seq, w.version, w.now)
	header, doc := text[:headerSize:headerSize], text[headerSize:]
	stored{
		version: w.version, changed: w.now.Unix(), terms: d.terms, user: len(d.json()) - 1, size: len(doc), ttl: d.ttl,
	}.header(header, doc)
	if len(doc) > inline {
		w.tx.Put(blobKey(w.c.number, w.version), doc)
		w.tx.Put(documentKey(w.c.number, w.pk, seq), header)
	} else {
		w.tx.Put(documentKey(w.c.number, w.pk, seq), text)
	}
	w.tx.Put(changeKey(w.c.number, w.version), append(appendNumber(seq), w.pk...))
	w.grown += int64(len(doc))
	return Result{ETag: w.e.etag(w.version), JSON: doc}
}

// remove works on damaged documents too: to delete one is the way out of the
// damage.
func (w *writer) remove(id string, old stored, seq uint64) {
	if len(w.c.unique) > 0 {
		if doc, err := old.json(w.tx, w.c); err == nil {
			w.release(w.c.uniqueEntries(w.pk, doc))
		} else {
			w.releaseAllOf(seq)
		}
	}
	w.version++
	w.tx.Delete(idKey(w.c.number, w.pk, id))
	w.tx.Delete(documentKey(w.c.number, w.pk, seq))
	w.forget(old)
}

// releaseAllOf looks for the unique keys of a document that cannot be read.
func (w *writer) releaseAllOf(seq uint64) {
	var entries [][]byte
	prefix := partitionPrefix('U', w.c.number, w.pk)
	w.tx.Scan(prefix, endOfPrefix(prefix), func(key, owner []byte) bool {
		if number(owner) == seq {
			entries = append(entries, slices.Clone(key))
		}
		return true
	})
	w.release(entries)
}

func (w *writer) patch(op *Op, old stored, seq uint64) Result {
	before, err := old.json(w.tx, w.c)
	if err != nil {
		w.broken = err
		return Result{}
	}
	holds, err := op.Patch.holds(w.ctx, before)
	if err != nil {
		w.broken = err
		return Result{}
	}
	if !holds {
		return failure(http.StatusPreconditionFailed, refusedCharge(old.size), "the condition of the patch is not true of the document")
	}
	doc := append(append(make([]byte, 0, old.user+op.Patch.grows+roomForSystem), before[:old.user]...), '}')
	doc, err = op.Patch.apply(doc, w.c)
	var ttl int32
	if err == nil {
		_, ttl, err = read(doc)
	}
	if err != nil {
		return failure(http.StatusBadRequest, refusedCharge(old.size), err.Error())
	}
	if len(doc) > MaxItem {
		return failure(http.StatusRequestEntityTooLarge, refusedCharge(old.size), "the patched document is too large")
	}
	r := w.replace(old, seq, Document{text: append(withRoom(len(doc)), doc...), terms: w.c.policy.countTerms(doc), ttl: ttl})
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
	now := e.now(c)
	err := e.view(consistency, func(reader disk.Reader) error {
		session = number(reader.Get(counterKey))
		old, _, ok, err := c.find(reader, pk, id)
		var doc []byte
		if ok {
			doc, err = old.json(reader, c)
		}
		if err != nil {
			return err
		}
		if !ok || c.expired(old, now) {
			r = failure(http.StatusNotFound, chargeOfMiss, "no document has this id")
			return nil
		}
		r = Result{Status: http.StatusOK, Charge: readCharge(old.size), ETag: e.etag(old.version), JSON: slices.Clone(doc)}
		return nil
	})
	if consistency.Double {
		r.Charge *= 2
	}
	return r, session, err
}
