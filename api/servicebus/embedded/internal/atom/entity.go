package atom

import (
	"encoding/xml"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/duration"
)

const (
	megabyte = 1 << 20
	kilobyte = 1 << 10

	// defaultWindow is the default window of duplicate detection.
	defaultWindow = 10 * time.Minute
)

func (h *Handler) serveEntity(r *http.Request, host, path string) (int, any, error) {
	switch r.Method {
	case http.MethodGet:
		e, err := h.Bus.Entity(path)
		if errors.Is(err, bus.ErrNotFound) {
			return 0, nil, notFound(path)
		}
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, h.entityEntry(host, e), nil
	case http.MethodPut:
		return h.putEntity(r, host, path)
	case http.MethodDelete:
		return http.StatusOK, nil, awaitResult(r, func(done func(error)) { h.Bus.Delete(path, done) })
	}
	return 0, nil, newStatusError(http.StatusMethodNotAllowed, "%s: want GET, PUT or DELETE", r.Method)
}

func (h *Handler) putEntity(r *http.Request, host, path string) (int, any, error) {
	d, err := readDescription(r)
	if err != nil {
		return 0, nil, err
	}
	e := bus.Entity{Path: path}
	updating := r.Header.Get("If-Match") != ""
	if updating {
		if e, err = h.Bus.Entity(path); err != nil {
			return 0, nil, err
		}
	}
	switch d.XMLName.Local {
	case "QueueDescription":
		e.Kind = bus.Queue
	case "TopicDescription":
		e.Kind = bus.Topic
	case "SubscriptionDescription":
		e.Kind = bus.Subscription
	default:
		return 0, nil, newStatusError(http.StatusBadRequest, "SubCode=40000. a %s does not describe an entity", d.XMLName.Local)
	}
	if updating && d.RequiresSession != nil && *d.RequiresSession != e.RequiresSession {
		return 0, nil, newStatusError(http.StatusBadRequest, "SubCode=40000. The value for the RequiresSession property of an existing %s cannot be changed", strings.TrimSuffix(d.XMLName.Local, "Description"))
	}
	if err := d.applyTo(&e); err != nil {
		return 0, nil, err
	}
	status := http.StatusCreated
	if updating {
		status = http.StatusOK
		err = awaitResult(r, func(done func(error)) { h.Bus.Update(e, done) })
	} else {
		err = awaitResult(r, func(done func(error)) { h.Bus.Create(e, done) })
		if err == nil && d.DefaultRuleDescription != nil {
			err = h.replaceDefaultRule(r, path, d.DefaultRuleDescription)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	if e, err = h.Bus.Entity(path); err != nil {
		return 0, nil, err
	}
	return status, h.entityEntry(host, e), nil
}

// setIfGiven sets *to to *from. If from is nil, it does nothing.
func setIfGiven[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// applyTo copies the members of the description that are not nil to an entity.
func (d *description) applyTo(e *bus.Entity) error {
	setIfGiven(&e.RequiresSession, d.RequiresSession)
	setIfGiven(&e.MaxDeliveryCount, d.MaxDeliveryCount)
	setIfGiven(&e.DeadLetterOnExpiry, d.DeadLetteringOnMessageExpiration)
	setIfGiven(&e.DeadLetterOnFilterFail, d.DeadLetteringOnFilterEvaluationExceptions)
	setIfGiven(&e.UserMetadata, d.UserMetadata)
	if d.MaxSizeInMegabytes != nil {
		e.MaxBytes = *d.MaxSizeInMegabytes * megabyte
	}
	if d.MaxMessageSizeInKilobytes != nil {
		e.MaxMessageBytes = *d.MaxMessageSizeInKilobytes * kilobyte
	}
	if d.ForwardTo != nil {
		e.ForwardTo = entityPath(*d.ForwardTo)
	}
	if d.ForwardDeadLetteredMessagesTo != nil {
		e.ForwardDeadLettersTo = entityPath(*d.ForwardDeadLetteredMessagesTo)
	}
	if d.Status != nil {
		e.Status = bus.Status(*d.Status)
	}
	window := e.DuplicateWindow
	for _, span := range []struct {
		name string
		text *string
		to   *time.Duration
	}{
		{"LockDuration", d.LockDuration, &e.LockDuration},
		{"DefaultMessageTimeToLive", d.DefaultMessageTimeToLive, &e.DefaultTTL},
		{"DuplicateDetectionHistoryTimeWindow", d.DuplicateDetectionHistoryTimeWindow, &window},
	} {
		if span.text == nil {
			continue
		}
		length, err := duration.Parse(*span.text)
		if err != nil {
			return newStatusError(http.StatusBadRequest, "SubCode=40000. %s %q: %v", span.name, *span.text, err)
		}
		if *span.text == duration.Longest {
			length = 0 // no limit
		}
		*span.to = length
	}
	detects := e.DuplicateWindow > 0
	setIfGiven(&detects, d.RequiresDuplicateDetection)
	e.DuplicateWindow = 0
	if detects {
		if e.DuplicateWindow = window; window == 0 {
			e.DuplicateWindow = defaultWindow
		}
	}
	return nil
}

// entityPath returns the path of an entity from a path or URL.
func entityPath(s string) string {
	if _, rest, found := strings.Cut(s, "://"); found {
		_, s, _ = strings.Cut(rest, "/")
	}
	return strings.Trim(s, "/")
}

// entityEntry returns the Atom entry of an entity, including its counts.
func (h *Handler) entityEntry(host string, e bus.Entity) atomEntry {
	counts, _ := h.Bus.Counts(e.Path) // if the entity was deleted concurrently, the counts are zero
	title, name := e.Path, "QueueDescription"
	ttl, window := duration.Longest, duration.Format(defaultWindow)
	if e.DefaultTTL > 0 {
		ttl = duration.Format(e.DefaultTTL)
	}
	if e.DuplicateWindow > 0 {
		window = duration.Format(e.DuplicateWindow)
	}
	status, detects, lock := string(e.Status), e.DuplicateWindow > 0, duration.Format(e.LockDuration)
	if status == "" {
		status = string(bus.StatusActive)
	}
	megabytes, kilobytes, total := e.MaxBytes/megabyte, e.MaxMessageBytes/kilobyte, counts.Active+counts.Scheduled+counts.Deferred+counts.DeadLetter+counts.TransferDeadLetter
	yes, no, never, available := true, false, duration.Longest, "Available"
	d := &description{
		AutoDeleteOnIdle: &never, EnableExpress: &no, EntityAvailabilityStatus: &available,
		DefaultMessageTimeToLive: &ttl, EnableBatchedOperations: &yes, Status: &status,
		CreatedAt: &e.CreatedAt, UpdatedAt: &e.UpdatedAt, AccessedAt: &e.UpdatedAt,
		CountDetails: &countDetails{
			Space: countSpace, ActiveMessageCount: counts.Active + counts.Deferred, DeadLetterMessageCount: counts.DeadLetter,
			ScheduledMessageCount: counts.Scheduled, TransferDeadLetterMessageCount: counts.TransferDeadLetter,
		},
	}
	if e.UserMetadata != "" {
		d.UserMetadata = &e.UserMetadata
	}
	if e.Kind != bus.Subscription {
		d.MaxSizeInMegabytes, d.RequiresDuplicateDetection, d.DuplicateDetectionHistoryTimeWindow = &megabytes, &detects, &window
		d.SizeInBytes, d.SupportOrdering, d.EnablePartitioning, d.MaxMessageSizeInKilobytes = &counts.Bytes, &yes, &no, &kilobytes
	}
	if e.Kind != bus.Topic {
		d.LockDuration, d.RequiresSession, d.MaxDeliveryCount, d.MessageCount = &lock, &e.RequiresSession, &e.MaxDeliveryCount, &total
		d.DeadLetteringOnMessageExpiration = &e.DeadLetterOnExpiry
		forwardURL(&d.ForwardTo, host, e.ForwardTo)
		forwardURL(&d.ForwardDeadLetteredMessagesTo, host, e.ForwardDeadLettersTo)
	}
	switch e.Kind {
	case bus.Queue:
	case bus.Topic:
		name = "TopicDescription"
		d.SubscriptionCount = &counts.Subscriptions
		d.SQLFilterCount, d.CorrelationFilterCount = h.countFilters(e.Path)
	case bus.Subscription:
		name = "SubscriptionDescription"
		d.DeadLetteringOnFilterEvaluationExceptions = &e.DeadLetterOnFilterFail
		_, title, _ = cutLast(e.Path, "/subscriptions")
	}
	d.XMLName, d.Instance = xml.Name{Space: busSpace, Local: name}, instanceSpace
	return atomEntry{
		ID: host + e.Path, Title: title, Published: formatTime(e.CreatedAt), Updated: formatTime(e.UpdatedAt),
		Content: entryContent{Type: "application/xml", Description: d},
	}
}

// forwardURL sets *to to the URL of the entity at path, unless path is empty.
func forwardURL(to **string, host, path string) {
	if path != "" {
		url := host + path
		*to = &url
	}
}

// countFilters counts the SQL filters and the correlation filters in all subscriptions of a topic.
func (h *Handler) countFilters(topic string) (sql, correlation *int) {
	sql, correlation = new(int), new(int)
	prefix := strings.ToLower(topic) + "/subscriptions/"
	for _, e := range h.Bus.Entities() {
		if !strings.HasPrefix(strings.ToLower(e.Path), prefix) {
			continue
		}
		rules, _ := h.Bus.Rules(e.Path) // if the subscription was deleted concurrently, it has no rules
		for _, r := range rules {
			if r.Filter.Correlation != nil {
				*correlation++
			} else {
				*sql++
			}
		}
	}
	return sql, correlation
}

func (h *Handler) listEntities(host string, p pageRange, wanted func(bus.Entity) bool) atomFeed {
	var matching []bus.Entity
	for _, e := range h.Bus.Entities() {
		if wanted(e) {
			matching = append(matching, e)
		}
	}
	f := atomFeed{Title: "Entities", Updated: formatTime(h.Clock.Now())}
	for _, e := range itemsOn(p, matching) {
		f.Entries = append(f.Entries, h.entityEntry(host, e))
	}
	return f
}

func (h *Handler) namespaceInfo(host string) atomEntry {
	name, _, _ := strings.Cut(host, ".")
	now := formatTime(h.Clock.Now())
	return atomEntry{ID: "https://" + host + "/$namespaceinfo", Title: name, Updated: now, Content: entryContent{Type: "application/xml", Description: namespaceInfo{
		CreatedTime: now, ModifiedTime: now, MessagingSKU: "Standard", Name: name, NamespaceType: "Messaging",
	}}}
}
