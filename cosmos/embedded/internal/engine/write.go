package engine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

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

// errRolledBack ends the transaction of a batch that has to leave no trace.
// The results tell what happened.
var errRolledBack = errors.New("rolled back")

// Write does all of ops in one logical partition, or none of them.
func (e *Engine) Write(ctx context.Context, c *Container, pk Partition, ops []Op, consistency Consistency) (Written, error) {
	// The transaction writes into w. It is only looked at when the
	// transaction is over: a caller that gives up gets an error instead.
	w := &writer{e: e, c: c, pk: pk, now: e.clock(), double: consistency.Double}
	err := e.store.Update(ctx, func(tx disk.Tx) error { return w.run(tx, ops) })
	if err != nil && !errors.Is(err, errRolledBack) {
		return Written{}, err
	}
	return w.out, nil
}

// A writer is one write transaction.
type writer struct {
	e       *Engine
	c       *Container
	pk      Partition
	now     time.Time
	double  bool
	tx      disk.Tx
	version uint64 // of the newest write so far
	out     Written
}

func (w *writer) run(tx disk.Tx, ops []Op) error {
	// The container may have gone since the request was routed, and another
	// of the same name may have come.
	if tx.Get(containerPrefix('N', w.c.number)) == nil {
		return notFound("container", w.c.ID)
	}
	w.tx = tx
	before := number(tx.Get(counterKey))
	w.version = before
	w.out = Written{Results: make([]Result, len(ops)), Failed: -1, Session: before}
	for i := range ops {
		r := w.do(&ops[i])
		w.out.Results[i] = r
		w.out.Charge += r.Charge
		if r.Status >= 300 {
			w.out.Failed = i
			for j := range ops {
				if j != i {
					w.out.Results[j] = Result{Status: http.StatusFailedDependency}
				}
			}
			return errRolledBack
		}
	}
	if w.version != before {
		w.out.Session = w.version
		tx.Put(counterKey, appendNumber(w.version))
		tx.Put(partitionKey(w.c.number, w.pk), appendNumber(w.version))
	}
	return nil
}

func failure(status int, charge Charge, message string) Result {
	return Result{Status: status, Charge: charge, Message: message}
}

func (w *writer) do(op *Op) Result {
	id := op.ID
	if op.Kind == Create || op.Kind == Upsert {
		id = op.Doc.ID
	}
	old, seq, exists := w.c.find(w.tx, w.pk, id)
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
	default:
		if !exists {
			return w.insert(op.Doc)
		}
		return w.replace(old, seq, op.Doc.json, op.Doc.terms)
	}
}

func (w *writer) read(old stored) Result {
	charge := readCharge(old.size)
	if w.double {
		charge *= 2
	}
	return Result{Status: http.StatusOK, Charge: charge, ETag: w.e.etag(old.version), JSON: slices.Clone(old.json(w.tx, w.c))}
}

func (w *writer) insert(doc Document) Result {
	w.version++
	seq := w.version
	w.tx.Put(idKey(w.c.number, w.pk, doc.ID), appendNumber(seq))
	r := w.put(doc.json, doc.terms, seq)
	r.Status, r.Charge = http.StatusCreated, createCharge(len(r.JSON), doc.terms)
	return r
}

func (w *writer) replace(old stored, seq uint64, doc []byte, terms int) Result {
	before := old.json(w.tx, w.c)
	changed := 0
	if user := w.userPart(before, old.user); user != nil {
		changed = w.c.policy.changedTerms(user, doc)
	}
	if old.size > inline {
		w.tx.Delete(blobKey(w.c.number, old.version))
	}
	w.version++
	r := w.put(doc, terms, seq)
	r.Status, r.Charge = http.StatusOK, replaceCharge(old.size, len(r.JSON), changed)
	return r
}

// userPart returns a copy of the document without its system properties. It
// returns nil if the policy has no terms to compare.
func (w *writer) userPart(doc []byte, user int) []byte {
	if p := w.c.policy; p.none || p.root.below == excluded && len(p.root.next) == 0 {
		return nil
	}
	return append(append(make([]byte, 0, user+1), doc[:user]...), '}')
}

// put stores doc, which it takes over, under the current version.
func (w *writer) put(doc []byte, terms int, seq uint64) Result {
	user := len(doc) - 1
	doc = w.e.finished(w.c, doc, seq, w.version, w.now)
	s := stored{version: w.version, terms: terms, user: user, size: len(doc)}
	if len(doc) > inline {
		w.tx.Put(blobKey(w.c.number, w.version), doc)
		w.tx.Put(documentKey(w.c.number, w.pk, seq), s.header(0))
	} else {
		w.tx.Put(documentKey(w.c.number, w.pk, seq), append(s.header(len(doc)), doc...))
	}
	return Result{ETag: w.e.etag(w.version), JSON: doc}
}

func (w *writer) remove(id string, old stored, seq uint64) {
	w.version++
	w.tx.Delete(idKey(w.c.number, w.pk, id))
	w.tx.Delete(documentKey(w.c.number, w.pk, seq))
	if old.size > inline {
		w.tx.Delete(blobKey(w.c.number, old.version))
	}
}

func (w *writer) patch(op *Op, old stored, seq uint64) Result {
	before := old.json(w.tx, w.c)
	if op.Patch.condition != nil && !op.Patch.condition.Holds(before) {
		return failure(http.StatusPreconditionFailed, refusedCharge(old.size), "the condition of the patch is not true of the document")
	}
	doc := append(append(make([]byte, 0, old.user+op.Patch.grows+roomForSystem), before[:old.user]...), '}')
	doc, err := op.Patch.apply(doc, w.c)
	if err != nil {
		return failure(http.StatusBadRequest, refusedCharge(old.size), err.Error())
	}
	if len(doc) > MaxItem {
		return failure(http.StatusRequestEntityTooLarge, refusedCharge(old.size), "the patched document is too large")
	}
	r := w.replace(old, seq, doc, w.c.policy.countTerms(doc))
	r.Charge += perPatch * Charge(len(op.Patch.operations))
	return r
}

// Read returns the document named id.
func (e *Engine) Read(c *Container, pk Partition, id string, consistency Consistency) (Result, uint64, error) {
	var r Result
	var session uint64
	err := e.view(consistency, func(reader disk.Reader) error {
		session = number(reader.Get(counterKey))
		old, _, ok := c.find(reader, pk, id)
		if !ok {
			r = failure(http.StatusNotFound, chargeOfMiss, "no document has this id")
		} else {
			r = Result{Status: http.StatusOK, Charge: readCharge(old.size), ETag: e.etag(old.version), JSON: slices.Clone(old.json(reader, c))}
		}
		return nil
	})
	if consistency.Double {
		r.Charge *= 2
	}
	return r, session, err
}
