package cosmos

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A check reads every document and compares it with the invariants. A head never withdraws what it states,
// so documents can be compared with the head while the hub runs. Hints are updated later than the head, so
// a suspicious hint is read twice, and skipped if it changes between the reads. If a mailbox is damaged or
// has a newer format, the check reports it as a finding, and continues with the next recipient. A repair
// corrects hints and rolls back unfinished intents.

// CheckOptions are the scope, the limits and the effects of a Check.
type CheckOptions struct {
	Recipient  domain.ActorID // check only this recipient; zero: all
	Repair     bool           // repair hints, roll back unfinished intents, and flush tails if the node writes none; events never change
	Resume     string         // CheckReport.Resume of an earlier Check that this one continues; "": start with the first recipient
	MaxIDBytes int            // bytes for the ids of one recipient; default 64 MB. If the ids need more, the events are read several times

	// Progress, if not nil, is called from time to time with a copy of the current report.
	Progress func(repository.CheckReport)
}

const maxFindings = 10_000

// A finding is a repository.Finding with its repair, which is nil if no repair is possible.
type finding struct {
	repository.Finding
	repair func(context.Context, *call) error
}

// These are the kinds of findings.
const (
	drawerMissing  = "drawer-missing"
	drawerTwice    = "drawer-twice"
	drawerShort    = "drawer-short"
	drawerUnsealed = "drawer-unsealed"
	drawerBeyond   = "drawer-beyond"
	drawerAhead    = "drawer-ahead"
	positionWrong  = "position-wrong"
	filterWrong    = "filter-wrong"
	pageMissing    = "page-missing"
	pageDamaged    = "page-damaged"
	pagesOverlap   = "pages-overlap"
	sequenceWrong  = "sequence-wrong"
	eventTwice     = "event-twice"
	countWrong     = "count-wrong"
	entryLow       = "entry-low"
	entryHigh      = "entry-high"
	entryStale     = "entry-stale"
	gateWrong      = "gate-wrong"
	gateInFront    = "gate-in-front"
	bundleMissing  = "bundle-missing"
	bundleWrong    = "bundle-wrong"
	bundleStray    = "bundle-stray"
	noticeWrong    = "notice-wrong"
	headWrong      = "head-wrong"
	intentLeft     = "intent-left"
	tailLeft       = "tail-left"
	unreadable     = "unreadable"
)

// repairedKinds are the kinds of findings that a check can repair. A check also rolls back abandoned
// intents, but counts them as rollbacks.
var repairedKinds = []string{
	drawerTwice, drawerUnsealed, drawerAhead, positionWrong, filterWrong, entryLow, entryHigh, entryStale, gateInFront, headWrong, tailLeft,
}

// Check compares all stored documents with the invariants, while the hub may be running. It needs bounded
// memory. If it returns an error, it could not read further, and the report has the findings up to there.
//
// An event that a head counts remains stored until a sweep removes it, so events can be checked during
// Saves. Hints are updated a little later. So a suspicious hint is read again, and is a finding only if
// the hint remains wrong while head and gates do not change.
func (r *Repository) Check(ctx context.Context, opts CheckOptions) (repository.CheckReport, error) {
	c := &mailboxChecker{r: r, opts: opts, report: repository.CheckReport{Findings: []repository.Finding{}, Resume: opts.Resume}}
	if c.opts.MaxIDBytes <= 0 {
		c.opts.MaxIDBytes = 64 << 20
	}
	err := c.run(ctx)
	return c.copyReport(), err
}

type mailboxChecker struct {
	r        *Repository
	opts     CheckOptions
	report   repository.CheckReport
	intents  []seenIntent
	reported time.Time
}

// A seenIntent is an intent that a check has seen. It may belong to a Save in flight.
type seenIntent struct {
	recipient domain.ActorID
	firstSeen
	own bool // the intent belongs to this process, so its Save may still be running
}

func (c *mailboxChecker) run(ctx context.Context) error {
	if c.opts.Recipient != (domain.ActorID{}) {
		if err := c.checkRecipient(ctx, c.opts.Recipient); err != nil {
			return err
		}
		return c.checkAbandonedIntents(ctx, true)
	}
	q := headsQuery(c.r.beginCall("check"))
	if err := c.continueFrom(q); err != nil {
		return err
	}
	for !q.IsDone() {
		recipients, strays, err := nextRecipients(ctx, q, 100)
		if err != nil {
			if c.opts.Resume != "" && client.StatusOf(err) == http.StatusBadRequest {
				err = domain.Errorf(domain.Invalid, "resume: %w; begin from the start", err)
			}
			return err
		}
		for _, stray := range strays {
			c.reportUnreadableHead(stray)
		}
		for _, recipient := range recipients {
			if err := c.checkRecipient(ctx, recipient); err != nil {
				return err
			}
		}
		if err := c.checkAbandonedIntents(ctx, false); err != nil {
			return err
		}
		c.report.Resume = ""
		if continuation := q.NextPage(); continuation != "" {
			c.report.Resume = c.encodeCheckpoint(continuation)
		}
		c.reportProgress(true)
		q.UseCall(c.r.client.Begin("check")) // each result page has its own budget of retries
	}
	return c.checkAbandonedIntents(ctx, true)
}

// A checkpoint is the state from which another check can continue.
type checkpoint struct {
	Continuation string            `json:"continuation"`
	Intents      map[string]string `json:"intents,omitempty"` // ids of the intents to check again, by recipient
}

func (c *mailboxChecker) encodeCheckpoint(continuation string) string {
	p := checkpoint{Continuation: continuation, Intents: make(map[string]string, len(c.intents))}
	for _, u := range c.intents {
		p.Intents[u.recipient.String()] = u.intent
	}
	return base64.RawURLEncoding.EncodeToString(client.Encode(&p))
}

// continueFrom restores the state of the check that reported opts.Resume.
func (c *mailboxChecker) continueFrom(q *client.Query) error {
	if c.opts.Resume == "" {
		return nil
	}
	var p checkpoint
	text, err := base64.RawURLEncoding.DecodeString(c.opts.Resume)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.Continuation == "" {
		return domain.Errorf(domain.Invalid, "resume: this is not a position that a check has reported; begin from the start")
	}
	q.ResumeAt(p.Continuation)
	for name, intent := range p.Intents {
		recipient, err := domain.ParseActorID(name)
		if err != nil {
			return domain.Errorf(domain.Invalid, "resume: %w", err)
		}
		// A checkpoint does not store the time at which the intent was first seen, so its owner gets the
		// full time again.
		c.intents = append(c.intents, seenIntent{recipient: recipient, firstSeen: firstSeen{intent, time.Now()}, own: true})
	}
	return nil
}

// headsQuery returns the query for all heads.
func headsQuery(c *call) *client.Query {
	return c.QueryAllPartitions(c.r.db.catalog, headID, "SELECT c.partitionKey FROM c WHERE c.id = @id",
		azcosmos.QueryParameter{Name: "@id", Value: headID})
}

// nextRecipients returns the next recipients. strays has an error for each damaged head, and for each
// head whose partition key is not the id of a recipient. The check reports these heads, and continues
// with the other recipients.
func nextRecipients(ctx context.Context, q *client.Query, size int) (recipients []domain.ActorID, strays []error, err error) {
	items, err := q.Next(ctx, size)
	if err != nil {
		err = client.Classify("list recipients", err)
		if q.SkipDamage(err) {
			return nil, []error{err}, nil
		}
		return nil, nil, err
	}
	for _, item := range items {
		var h head
		err := q.Decode(item, &h)
		if err != nil {
			strays = append(strays, err)
			continue
		}
		recipient, err := domain.ParseActorID(h.PartitionKey)
		if err != nil {
			strays = append(strays, domain.Errorf(domain.Damaged, "a head is in partition %q: %w", h.PartitionKey, err))
			continue
		}
		recipients = append(recipients, recipient)
	}
	return recipients, strays, nil
}

// maxChecks limits the checks of a recipient. They end earlier if two consecutive checks agree.
const maxChecks = 6

// checkRecipient checks one recipient until the result is certain.
func (c *mailboxChecker) checkRecipient(ctx context.Context, recipient domain.ActorID) error {
	now, confirmed, err := c.checkUntilCertain(ctx, recipient)
	if isOfMailbox(err) {
		c.reportUnreadable(recipient, err)
		return nil
	}
	if err != nil {
		return err
	}
	c.report.Recipients++
	c.report.Cabinets += int64(len(now.h.Cabinets))
	c.report.Drawers += now.drawers
	c.report.Events += now.events
	c.report.Open += now.open
	c.addFindings(confirmed)
	if it := now.h.Intent; it != nil {
		c.intents = append(c.intents, seenIntent{recipient, firstSeen{it.ID, time.Now()}, it.Owner == c.r.owner})
	}
	c.reportProgress(false)
	return nil
}

// checkUntilCertain checks a recipient until the result is certain, and repairs the findings if the options
// request it. It returns the last check and the confirmed findings. It fails with Damaged if a document
// cannot be read.
func (c *mailboxChecker) checkUntilCertain(ctx context.Context, recipient domain.ActorID) (*recipientCheck, []finding, error) {
	var before, now *recipientCheck
	made, times := 0, make(map[findingKey]int) // number of checks so far, and of the checks with each finding
	for n := range maxChecks {
		l := newRecipientCheck(c, recipient)
		if err := l.checkAll(ctx); err != nil {
			return nil, nil, client.Classify("check "+recipient.String(), err)
		}
		before, now = now, l
		made++
		for at := range l.at {
			times[at]++
		}
		if len(l.findings) == 0 || l.agreesWith(before) && !l.mayBeStale() {
			break
		}
		if n < maxChecks-1 && !client.Sleep(ctx, leasePoll<<n/2+c.r.client.Jitter(leasePoll<<n)) { // waits for hints that are not written yet
			return nil, nil, ctx.Err()
		}
	}
	confirmed := slices.DeleteFunc(now.confirmedBy(before), func(f finding) bool {
		return f.Damage && c.r.db.ReadsMayBeStale() && times[findingKey{f.Kind, f.Where}] < made
	})
	if c.opts.Repair && len(confirmed) > 0 {
		if err := c.repairFindings(ctx, recipient, confirmed); err != nil {
			return nil, nil, err
		}
	}
	return now, confirmed, nil
}

// isOfMailbox reports whether err affects only the documents of one recipient, so that the check can
// continue with the other recipients. err may be unclassified.
func isOfMailbox(err error) bool {
	kind := domain.KindOf(client.Classify("", err))
	return kind == domain.Damaged || kind == domain.NewerFormat
}

// reportUnreadable reports a recipient that cannot be checked, because one of its documents is damaged or
// has a newer format.
func (c *mailboxChecker) reportUnreadable(recipient domain.ActorID, err error) {
	c.report.Recipients++
	c.addUnreadable(recipient, err)
	c.reportProgress(false)
}

func (c *mailboxChecker) addUnreadable(recipient domain.ActorID, err error) {
	c.addFindings([]finding{unreadableFinding(recipient, err)})
}

// reportUnreadableHead reports a head that cannot be read. The recipient is known only if the store returns its
// id.
func (c *mailboxChecker) reportUnreadableHead(err error) {
	f := finding{Finding: repository.Finding{Rule: "H1", Kind: unreadable, Where: "a head", Text: err.Error(), Damage: true}}
	if damage, ok := errors.AsType[*client.Failure](err); ok {
		f.Recipient = damage.DamagedPartition()
	}
	c.addFindings([]finding{f})
}

func unreadableFinding(recipient domain.ActorID, err error) finding {
	f := finding{Finding: repository.Finding{
		Rule: "H1", Kind: unreadable, Recipient: recipient.String(), Where: "a document of this recipient", Text: err.Error(), Damage: true,
	}}
	if domain.KindOf(err) == domain.NewerFormat {
		f.Kind, f.Damage = repository.NewerFormatFinding, false
	}
	return f
}

// repairFindings repairs the findings that have a repair, and checks which repairs have succeeded.
func (c *mailboxChecker) repairFindings(ctx context.Context, recipient domain.ActorID, findings []finding) error {
	tried := false
	for i := range findings {
		if f := &findings[i]; f.repair != nil {
			tried = true
			// A repair is one conditional write, a rollback or several flushes. After a crash during or
			// after this write, the next check repairs the rest.
			if err := f.repair(ctx, c.r.beginCall("repair")); err != nil && !client.IsRefused(err) && !isStale(err) {
				return client.Classify("repair "+recipient.String(), err)
			}
		}
	}
	if !tried {
		return nil
	}
	after := newRecipientCheck(c, recipient)
	if err := after.checkAll(ctx); err != nil {
		return client.Classify("check "+recipient.String(), err)
	}
	for i := range findings {
		if f := &findings[i]; f.repair != nil && !after.hasFinding(f) {
			f.Repaired = true
			c.r.metrics.repairs.WithLabelValues(f.Kind).Inc()
		}
	}
	return nil
}

// checkAbandonedIntents reads the heads with the seen intents again. An intent that still exists after its
// owner's time is abandoned. If an owner still has time, checkAbandonedIntents waits, or postpones the
// intent to a later call if wait is false.
func (c *mailboxChecker) checkAbandonedIntents(ctx context.Context, wait bool) error {
	var later []seenIntent
	for _, u := range c.intents {
		dead := c.r.opts.Exclusive && !u.own // with Exclusive, no other process uses the store
		if !dead && !wait && time.Until(u.since.Add(minIntentAge)) > 0 {
			later = append(later, u)
			continue
		}
		h, err := c.awaitIntentOwner(ctx, u, dead)
		if isOfMailbox(err) {
			c.addUnreadable(u.recipient, err)
			continue
		}
		if err != nil {
			return err
		}
		if h == nil {
			continue
		}
		f := finding{Finding: repository.Finding{
			Rule: "H5", Kind: intentLeft, Recipient: u.recipient.String(), Where: "head",
			Text: fmt.Sprintf("the Save %s of numbers %d to %d was abandoned; the next Save rolls it back", u.intent, h.Intent.First, h.Intent.Last),
		}}
		if c.opts.Repair {
			f.Repaired, err = c.rollBackIntent(ctx, u)
			if isOfMailbox(err) {
				c.addUnreadable(u.recipient, err)
			} else if err != nil {
				return err
			}
		}
		c.addFindings([]finding{f})
		if f.Repaired { // hints were not checked while the intent existed
			if err := c.checkHints(ctx, u.recipient); err != nil {
				return err
			}
		}
	}
	c.intents = later
	return nil
}

// minIntentAge is the age up to which an intent may belong to a Save in flight.
const minIntentAge = lease << 1

// checkHints checks the hints of a recipient. It drops findings of damage, which are already reported.
func (c *mailboxChecker) checkHints(ctx context.Context, recipient domain.ActorID) error {
	_, confirmed, err := c.checkUntilCertain(ctx, recipient)
	if isOfMailbox(err) {
		return nil
	}
	c.addFindings(slices.DeleteFunc(confirmed, func(f finding) bool { return f.Damage }))
	return err
}

// awaitIntentOwner gives the owner of an intent as much time as a writer would, or none if the owner is
// dead. It returns the head if the intent still exists afterwards, otherwise nil.
func (c *mailboxChecker) awaitIntentOwner(ctx context.Context, u seenIntent, dead bool) (*head, error) {
	for patience := minIntentAge; ; {
		if !dead && !client.Sleep(ctx, max(0, time.Until(u.since.Add(patience)))) {
			return nil, ctx.Err()
		}
		h, err := c.r.beginCall("check").readHead(ctx, u.recipient)
		if err != nil {
			return nil, client.Classify("check "+u.recipient.String(), err)
		}
		if h.Intent == nil || h.Intent.ID != u.intent {
			return nil, nil //nolint:nilnil // it does not exist
		}
		granted := lease << min(h.Undone, maxDoubled)
		granted += granted / 4 // the largest jitter that a writer adds
		if dead || granted <= patience {
			return h, nil
		}
		patience = granted
	}
}

// rollBackIntent rolls back an intent as the next writer would, and reports whether it succeeded.
func (c *mailboxChecker) rollBackIntent(ctx context.Context, u seenIntent) (bool, error) {
	w := newWriter(c.r, u.recipient)
	call := c.r.beginCall("repair")
	err := call.Retry(ctx, func() error {
		w.head = nil
		if err := w.readHead(ctx, call); err != nil {
			return err
		}
		if w.head.Intent == nil || w.head.Intent.ID != u.intent {
			return nil
		}
		return w.rollBackIntent(ctx, call)
	})
	return err == nil, client.Classify("repair "+u.recipient.String(), err)
}

func (c *mailboxChecker) addFindings(findings []finding) {
	for i := range findings {
		f := &findings[i]
		c.report.Found++
		if f.Repaired {
			c.report.Repaired++
		}
		if len(c.report.Findings) < maxFindings {
			c.report.Findings = append(c.report.Findings, f.Finding)
		}
	}
}

// reportProgress reports the progress of the check, at most twice a second unless must is true.
func (c *mailboxChecker) reportProgress(must bool) {
	const every = 500 * time.Millisecond
	if now := time.Now(); c.opts.Progress != nil && (must || now.Sub(c.reported) >= every) {
		c.reported = now
		c.opts.Progress(c.copyReport())
	}
}

func (c *mailboxChecker) copyReport() repository.CheckReport {
	report := c.report
	report.Findings = slices.Clone(report.Findings)
	return report
}
