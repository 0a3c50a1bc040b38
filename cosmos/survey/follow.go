package survey

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

const (
	// maxRound is the time limit for a round while the feeds have more changes.
	maxRound = 30 * time.Second
	// quietFor is the time for which a feed without more changes is not read again in a round, while
	// other feeds have changes.
	quietFor = 5 * time.Second
)

// follow reads the feeds until they have no more changes, or for maxRound. It reads one page of each feed
// in turn, so that all feeds are read up to about the same time. hasMore reports whether a feed may have
// more changes.
func (s *Survey) follow(ctx context.Context) (hasMore bool, err error) {
	began := s.opts.Clock()
	quiet := make(map[string]time.Time)
	for hasMore = true; hasMore && s.opts.Clock().Sub(began) < maxRound; {
		hasMore = false
		for _, container := range s.reader.Followed() {
			if at, isQuiet := quiet[container]; isQuiet && s.opts.Clock().Sub(at) < quietFor {
				continue
			}
			n, err := s.followPage(ctx, container, s.feedOf(container), pageSize)
			if err != nil {
				return false, err
			}
			if n > 0 {
				hasMore = true
				delete(quiet, container)
			} else {
				quiet[container] = s.opts.Clock()
			}
		}
		s.noteAt()
		if err := s.flushIfDue(ctx); err != nil {
			return false, err
		}
	}
	return hasMore, nil
}

// feedOf returns the feed of a container, with a full budget of retries.
func (s *Survey) feedOf(container string) *client.Feed {
	feed := s.own.feeds[container]
	if feed == nil {
		feed = s.beginCall().Feed(s.containerClient(container), s.own.since, s.own.tokens[container])
		if s.own.feeds == nil {
			s.own.feeds = make(map[string]*client.Feed)
		}
		s.own.feeds[container] = feed
	}
	feed.UseCall(s.beginCall())
	return feed
}

// noteAt updates the time of the survey, before which all changes were read. The time never decreases.
func (s *Survey) noteAt() {
	var at time.Time
	for _, container := range s.reader.Followed() {
		upTo := s.feedOf(container).ReadUpTo()
		if upTo.IsZero() {
			return
		}
		if at.IsZero() || upTo.Before(at) {
			at = upTo
		}
	}
	if at.After(s.own.at) {
		s.own.at = at.UTC()
		s.table.setAt(s.own.at)
	}
}

// followPage applies the next changes of a feed, and returns their number.
func (s *Survey) followPage(ctx context.Context, container string, feed *client.Feed, size int) (int, error) {
	docs, err := feed.Next(ctx, size)
	if err != nil {
		if err := s.noteDamage(err); err != nil {
			return 0, err
		}
		return 0, client.Classify("follow the changes of "+container, err)
	}
	s.noteFollowed(container, docs)
	if err := s.applyDocuments(ctx, s, container, docs, false); err != nil {
		return 0, err
	}
	s.own.tokens[container] = feed.Token()
	return len(docs), nil
}

// noteDamage records that a document of a mailbox is damaged in the file of an embedded engine. A walk
// can skip the document, but a feed cannot, so noteDamage returns client.ErrFeedLost to begin a walk. It
// returns nil for any other failure.
func (s *Survey) noteDamage(err error) error {
	recipient, ok := s.damagedMailbox(err)
	if !ok {
		return nil
	}
	s.setRecord(recipient, s.reader.Damaged(s.table.mailboxRecord(recipient), err.Error()))
	return client.ErrFeedLost
}

// damagedMailbox returns the recipient of the document that err reports as damaged in the file of an
// embedded engine, and false for any other error.
func (s *Survey) damagedMailbox(err error) (domain.ActorID, bool) {
	name, _, _ := strings.Cut(client.FailureOf(err).DamagedPartition(), "|")
	recipient, perr := domain.ParseActorID(name)
	return recipient, perr == nil
}

// A recordSet contains records of mailboxes, to which documents are applied. The records are those of
// the survey or copies of them.
type recordSet interface {
	mailboxRecord(domain.ActorID) []byte
	setRecord(domain.ActorID, []byte)

	// canApply reports whether a document may be applied.
	canApply(container string, recipient domain.ActorID, doc []byte) bool
}

// applyDocuments applies documents to the records of their mailboxes.
func (s *Survey) applyDocuments(ctx context.Context, into recordSet, container string, docs [][]byte, isWalk bool) error {
	var wanted []Reference
	for _, doc := range docs {
		recipient, ok := s.reader.Recipient(container, doc)
		if !ok || !into.canApply(container, recipient, doc) {
			continue
		}
		record, refers := s.reader.Apply(into.mailboxRecord(recipient), container, doc, isWalk)
		wanted = append(wanted, refers...)
		into.setRecord(recipient, record)
	}
	return s.fetchDocuments(ctx, into, wanted)
}

// mailboxRecord implements recordSet.
func (s *Survey) mailboxRecord(recipient domain.ActorID) []byte {
	return s.table.mailboxRecord(recipient)
}

// canApply implements recordSet. If a feed has already returned a newer version of the document,
// canApply returns false and schedules a recheck of the mailbox.
func (s *Survey) canApply(container string, recipient domain.ActorID, doc []byte) bool {
	if len(s.own.followed) == 0 || !s.isOutdated(versionOf(container, recipient, doc)) {
		return true
	}
	s.recheckLater(recipient)
	return false
}

// setRecord implements recordSet. The next flush stores a changed record.
func (s *Survey) setRecord(recipient domain.ActorID, record []byte) {
	if !bytes.Equal(record, s.table.mailboxRecord(recipient)) {
		s.table.setRecord(recipient, record)
		s.own.pending[recipient] = true
	}
}

// fetchDocuments reads the wanted documents, and applies the documents that exist.
func (s *Survey) fetchDocuments(ctx context.Context, into recordSet, wanted []Reference) error {
	byID := make(map[string][]string)
	for _, r := range wanted {
		if r.Partition == "" {
			byID[r.Container] = append(byID[r.Container], r.ID)
			continue
		}
		var doc json.RawMessage
		_, err := s.beginCall().Read(ctx, s.containerClient(r.Container), r.Partition, r.ID, &doc)
		if client.IsNotFound(err) {
			if recipient, err := domain.ParseActorID(r.Partition); err == nil {
				s.recheckLater(recipient)
			}
			continue
		}
		if err != nil {
			return client.Classify("read "+r.ID+" of "+r.Partition, err)
		}
		if err := s.applyDocuments(ctx, into, r.Container, [][]byte{doc}, false); err != nil {
			return err
		}
	}
	for container, ids := range byID {
		for len(ids) > 0 {
			n := min(len(ids), walkPage)
			if err := s.fetchByIDs(ctx, into, container, ids[:n]); err != nil {
				return err
			}
			ids = ids[n:]
		}
	}
	return nil
}

// fetchByIDs reads all documents with one of the ids, in any partition.
func (s *Survey) fetchByIDs(ctx context.Context, into recordSet, container string, ids []string) error {
	names := make([]string, len(ids))
	params := make([]azcosmos.QueryParameter, len(ids))
	for i, id := range ids {
		names[i] = "@id" + strconv.Itoa(i)
		params[i] = azcosmos.QueryParameter{Name: names[i], Value: id}
	}
	q := s.beginCall().QueryAllPartitions(s.containerClient(container), container, "SELECT * FROM c WHERE c.id IN ("+strings.Join(names, ", ")+")", params...)
	for !q.IsDone() {
		docs, err := s.nextOfQuery(ctx, into, q, container)
		if err != nil {
			return err
		}
		if err := s.applyDocuments(ctx, into, container, docs, false); err != nil {
			return err
		}
		q.UseCall(s.beginCall())
	}
	return nil
}

// nextOfQuery returns the next documents of a query. It records a document that is damaged in the file
// of an embedded engine, and skips it.
func (s *Survey) nextOfQuery(ctx context.Context, into recordSet, q *client.Query, container string) ([][]byte, error) {
	docs, err := q.Next(ctx, walkPage)
	if err == nil {
		return docs, nil
	}
	recipient, isKnown := s.damagedMailbox(err)
	if !q.SkipDamage(client.Classify("read mailboxes", err)) {
		return nil, client.Classify("read the mailboxes in "+container, err)
	}
	if isKnown {
		into.setRecord(recipient, s.reader.Damaged(into.mailboxRecord(recipient), err.Error()))
	}
	return nil, nil
}

// walkMailboxes reads all mailboxes that follow the position of the walk.
func (s *Survey) walkMailboxes(ctx context.Context) error {
	if s.own.since.IsZero() {
		if err := s.takeTokens(ctx); err != nil {
			return err
		}
	}
	queries := s.reader.Walk()
	for at := s.own.walk; at.Query < len(queries); at = s.own.walk {
		container := queries[at.Query].Container
		q := s.beginCall().QueryAllPartitions(s.containerClient(container), container, queries[at.Query].Text)
		if at.Position != "" {
			q.ResumeAt(at.Position)
		}
		docs, err := s.nextOfQuery(ctx, s, q, container)
		if err != nil {
			if at.Position != "" && client.StatusOf(err) == 400 { // the position was stored by another version, or before the store was restored
				s.own.walk = &walkPosition{Query: at.Query}
			}
			return err
		}
		if err := s.applyDocuments(ctx, s, container, docs, true); err != nil {
			return err
		}
		s.own.walk = &walkPosition{Query: at.Query, Position: q.NextPage()}
		if q.IsDone() {
			s.own.walk = &walkPosition{Query: at.Query + 1}
		}
		if err := s.flushIfDue(ctx); err != nil {
			return err
		}
	}
	s.own.walk = nil
	s.endRecheck()
	return nil
}

// beginWalk makes the next round read all mailboxes again.
func (s *Survey) beginWalk() {
	s.own.since, s.own.tokens, s.own.walk, s.own.feeds = time.Time{}, make(map[string]string), &walkPosition{}, nil
}

// takeTokens records the positions from which the feeds continue after the walk. The positions are before
// the walk, so that the feeds return all changes during the walk. takeTokens stores the state to get the
// current time by the clock of the account.
func (s *Survey) takeTokens(ctx context.Context) error {
	if err := s.storeState(ctx, nil); err != nil {
		return err
	}
	var doc json.RawMessage
	if _, err := s.beginCall().Read(ctx, s.lines, partition, stateID, &doc); err != nil {
		return client.Classify("read the state of the survey", err)
	}
	since := client.ModifiedAt(doc).Add(-feedMargin)
	s.own.since = since
	for _, container := range s.reader.Followed() {
		if _, err := s.followPage(ctx, container, s.feedOf(container), 1); err != nil {
			s.own.since, s.own.feeds = time.Time{}, nil
			return err
		}
	}
	return nil
}
