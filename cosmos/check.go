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

// A check reads every document and compares it with the invariants. What a head states
// stays true, so documents can be compared with it while the hub runs. Hints follow later,
// so a suspicious one is read twice, and one that changes meanwhile is skipped. A mailbox
// that cannot be read, because it is damaged or has a newer format, is a finding, and the
// check continues with the next recipient. A repair corrects hints and rolls back
// unfinished intents.

// CheckOptions select what a Check reads.
type CheckOptions struct {
	Recipient domain.ActorID // only this one; zero: all
	Repair    bool           // repair the hints, roll back unfinished intents, and flush tails if the node writes none; no event changes
	Resume    string         // continue where a Check was that reported this; "" from the start
	Memory    int            // bytes for the ids of one recipient; default 64 MB. If they do not fit, the events are read more than once

	// Progress, if not nil, is called now and then with the progress of the Check. Its
	// argument is a copy.
	Progress func(repository.CheckReport)
}

const maxFindings = 10_000

// A finding is a Finding and its repair, nil if it cannot be repaired.
type finding struct {
	repository.Finding
	repair func(context.Context, *call) error
}

// The kinds of findings.
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

// repairedKinds are those that a check can repair, besides intents, whose repair counts as a rollback.
var repairedKinds = []string{
	drawerTwice, drawerUnsealed, drawerAhead, positionWrong, filterWrong, entryLow, entryHigh, entryStale, gateInFront, headWrong, tailLeft,
}

// Check compares everything that is stored with the invariants, while the hub may be running.
// It needs bounded memory. The error says that it could not read; what it has found
// before that is in the report.
//
// What a head states stays stored until the sweep removes it, so it
// can be checked during Saves. Hints follow the truth a little later; so
// what looks wrong is read again, and only what stays wrong while nothing
// else moves is a finding.
func (r *Repository) Check(ctx context.Context, opts CheckOptions) (repository.CheckReport, error) {
	c := &mailboxChecker{r: r, opts: opts, report: repository.CheckReport{Findings: []repository.Finding{}, Resume: opts.Resume}}
	if c.opts.Memory <= 0 {
		c.opts.Memory = 64 << 20
	}
	err := c.run(ctx)
	return c.copyReport(), err
}

type mailboxChecker struct {
	r       *Repository
	opts    CheckOptions
	report  repository.CheckReport
	intents []unfinished
	told    time.Time
}

// An unfinished intent may be that of a Save that is under way.
type unfinished struct {
	recipient domain.ActorID
	firstSeen
	own bool // perhaps of this process, which is alive
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
			c.unreadableHead(stray)
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
		q.UseCall(c.r.client.Begin("check")) // a budget for each result page
	}
	return c.checkAbandonedIntents(ctx, true)
}

// A checkpoint is where another check can continue.
type checkpoint struct {
	Continuation string            `json:"continuation"`
	Intents      map[string]string `json:"intents,omitempty"` // by recipient: those to be looked at again
}

func (c *mailboxChecker) encodeCheckpoint(continuation string) string {
	p := checkpoint{Continuation: continuation, Intents: make(map[string]string, len(c.intents))}
	for _, u := range c.intents {
		p.Intents[u.recipient.String()] = u.intent
	}
	return base64.RawURLEncoding.EncodeToString(client.Encode(&p))
}

// continueFrom begins where the check that reported opts.Resume ended.
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
		return domain.Errorf(domain.Invalid, "resume: this is not what a check has reported; begin from the start")
	}
	q.ResumeAt(p.Continuation)
	for name, intent := range p.Intents {
		recipient, err := domain.ParseActorID(name)
		if err != nil {
			return domain.Errorf(domain.Invalid, "resume: %w", err)
		}
		// How long ago it was seen is not known. It has all its time again.
		c.intents = append(c.intents, unfinished{recipient: recipient, firstSeen: firstSeen{intent, time.Now()}, own: true})
	}
	return nil
}

// headsQuery returns the query for all recipients that have a head.
func headsQuery(c *call) *client.Query {
	return c.QueryAllPartitions(c.r.db.catalog, headID, "SELECT c.partitionKey FROM c WHERE c.id = @id",
		azcosmos.QueryParameter{Name: "@id", Value: headID})
}

// nextRecipients returns some more recipients. strays are the heads that lie where no
// recipient is, or are damaged: they are reported, and do not affect the others.
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
			strays = append(strays, domain.Errorf(domain.Damaged, "a head lies in partition %q: %w", h.PartitionKey, err))
			continue
		}
		recipients = append(recipients, recipient)
	}
	return recipients, strays, nil
}

// looks is how often a recipient is checked until two checks find the same.
const looks = 6

// checkRecipient looks at one recipient until it is sure.
func (c *mailboxChecker) checkRecipient(ctx context.Context, recipient domain.ActorID) error {
	now, confirmed, err := c.judgeRecipient(ctx, recipient)
	if isOfMailbox(err) {
		c.noteUnreadable(recipient, err)
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
		c.intents = append(c.intents, unfinished{recipient, firstSeen{it.ID, time.Now()}, it.Owner == c.r.owner})
	}
	c.reportProgress(false)
	return nil
}

// judgeRecipient looks until it is sure, and repairs if it is to. It returns the last look
// and the findings. It fails with Damaged for a document that cannot be read.
func (c *mailboxChecker) judgeRecipient(ctx context.Context, recipient domain.ActorID) (*recipientCheck, []finding, error) {
	var before, now *recipientCheck
	made, times := 0, make(map[spot]int) // looks, and in how many of them something was found
	for n := range looks {
		l := newLook(c, recipient)
		if err := l.checkAll(ctx); err != nil {
			return nil, nil, client.Classify("check "+recipient.String(), err)
		}
		before, now = now, l
		made++
		for at := range l.at {
			times[at]++
		}
		if len(l.findings) == 0 || l.agreesWith(before) && !l.mayBeOld() {
			break
		}
		if n < looks-1 && !client.Sleep(ctx, leasePoll<<n/2+c.r.client.Jitter(leasePoll<<n)) { // hints may be under way
			return nil, nil, ctx.Err()
		}
	}
	confirmed := slices.DeleteFunc(now.confirmedBy(before), func(f finding) bool {
		return f.Damage && c.r.db.ReadsMayBeStale() && times[spot{f.Kind, f.Where}] < made
	})
	if c.opts.Repair && len(confirmed) > 0 {
		if err := c.repairFindings(ctx, recipient, confirmed); err != nil {
			return nil, nil, err
		}
	}
	return now, confirmed, nil
}

// isOfMailbox reports whether err is about the documents of one recipient, so that the
// others can be checked.
func isOfMailbox(err error) bool {
	kind := domain.KindOf(err)
	return kind == domain.Damaged || kind == domain.NewerFormat
}

// noteUnreadable notes that a recipient cannot be looked at for a document that is not
// what it should be, or has a newer format. The others can.
func (c *mailboxChecker) noteUnreadable(recipient domain.ActorID, err error) {
	c.report.Recipients++
	c.addUnreadable(recipient, err)
	c.reportProgress(false)
}

func (c *mailboxChecker) addUnreadable(recipient domain.ActorID, err error) {
	c.addFindings([]finding{unreadableFinding(recipient, err)})
}

// unreadableHead notes a head that cannot be read, of a recipient whose name is known
// only if the store says so.
func (c *mailboxChecker) unreadableHead(err error) {
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

// repairFindings repairs what can be repaired, and looks whether that helped.
func (c *mailboxChecker) repairFindings(ctx context.Context, recipient domain.ActorID, findings []finding) error {
	tried := false
	for i := range findings {
		if f := &findings[i]; f.repair != nil {
			tried = true
			// A repair is one conditional write, a rollback or flushes. A crash within or after it
			// leaves the rest to the next check.
			if err := f.repair(ctx, c.r.beginCall("repair")); err != nil && !client.IsRefused(err) && !isStale(err) {
				return client.Classify("repair "+recipient.String(), err)
			}
		}
	}
	if !tried {
		return nil
	}
	after := newLook(c, recipient)
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

// checkAbandonedIntents looks again at the intents that were seen: one that is still there
// after the time that its owner is given has been left behind. Those that have
// time left are waited for, or kept for later.
func (c *mailboxChecker) checkAbandonedIntents(ctx context.Context, wait bool) error {
	var later []unfinished
	for _, u := range c.intents {
		dead := c.r.opts.Exclusive && !u.own // its owner
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
			Text: fmt.Sprintf("the Save %s of numbers %d to %d was left unfinished; the next Save undoes it", u.intent, h.Intent.First, h.Intent.Last),
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
		if f.Repaired { // as long as it stood, no hint of this recipient was judged
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

// checkHints judges the hints of a recipient whose damage has been reported.
func (c *mailboxChecker) checkHints(ctx context.Context, recipient domain.ActorID) error {
	_, confirmed, err := c.judgeRecipient(ctx, recipient)
	if isOfMailbox(err) {
		return nil
	}
	c.addFindings(slices.DeleteFunc(confirmed, func(f finding) bool { return f.Damage }))
	return err
}

// awaitIntentOwner gives the owner of an intent, unless he is dead, at least as long as
// another writer would give him, and returns the head if the intent is still there
// then, else nil.
func (c *mailboxChecker) awaitIntentOwner(ctx context.Context, u unfinished, dead bool) (*head, error) {
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
		granted += granted / 4 // a writer's jitter
		if dead || granted <= patience {
			return h, nil
		}
		patience = granted
	}
}

// rollBackIntent rolls an intent back, as the next writer would.
func (c *mailboxChecker) rollBackIntent(ctx context.Context, u unfinished) (bool, error) {
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

// reportProgress reports how far the check is, at most twice a second unless it must.
func (c *mailboxChecker) reportProgress(must bool) {
	const every = 500 * time.Millisecond
	if now := time.Now(); c.opts.Progress != nil && (must || now.Sub(c.told) >= every) {
		c.told = now
		c.opts.Progress(c.copyReport())
	}
}

func (c *mailboxChecker) copyReport() repository.CheckReport {
	report := c.report
	report.Findings = slices.Clone(report.Findings)
	return report
}
