package energymarket

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// A Market is a day of a small energy market: its actors, and the events that
// its domains send to them. The same seed generates an identical market.
type Market struct {
	Actors  []Actor
	Backlog []Event // events of previous days, which wait for Actors[BacklogOwner]
	Day     []Event // events of the day, ordered by time
}

// An Actor is a company that fetches events.
type Actor struct {
	GLN, Name, Role string
	share           int // share of all events that this actor receives
}

// An Event is an event that a domain sends to the hub.
type Event struct {
	ID, Recipient, Origin, ContentType, DocumentType string
	SupportsBundling                                 bool
	Weight                                           int64
	Payload                                          []byte // compact JSON; nil if the event has no payload
}

// InlineOrigin is the domain that sends a payload with every event.
const InlineOrigin = "Charges"

// BacklogOwner is the index of the actor that did not fetch its data on the
// previous days.
const BacklogOwner = 3

// participants are fictitious companies with roles of the European energy
// market: grid operator, supplier, balance responsible party, and so on.
var participants = []Actor{
	{"", "Nørre Net", "DDM", 9},
	{"", "Søndre Net", "DDM", 7},
	{"", "Øens Net", "DDM", 3},
	{"", "Lærke El", "DDQ", 22},
	{"", "Viben Energi", "DDQ", 15},
	{"", "Svale Strøm", "DDQ", 12},
	{"", "Mejse Kraft", "DDQ", 8},
	{"", "Stær El", "DDQ", 5},
	{"", "Balance Vest", "DDK", 6},
	{"", "Balance Øst", "DDK", 6},
	{"", "Målerhuset", "MDR", 5},
	{"", "Systemdrift", "EZ", 2},
}

// A Kind describes a kind of event, and how frequent it is.
type Kind struct {
	Origin, ContentType string
	DocumentTypes       []string
	share               int   // this kind's share of all events
	alone               int   // number of events per thousand that do not support bundling
	min, max            int64 // minimum and maximum weight, in KB
	payload             int   // percentage of events with a payload
}

// Kinds lists the kinds of events of the market.
var Kinds = []Kind{
	{"TimeSeries", "NotifyValidatedMeasureData", []string{"RSM-012"}, 40, 4, 1, 12, 5},
	{"TimeSeries", "RejectRequestValidatedMeasureData", []string{"RSM-015"}, 3, 100, 1, 2, 0},
	{"Aggregations", "NotifyAggregatedMeasureData", []string{"RSM-014"}, 15, 10, 4, 600, 0},
	{"Aggregations", "NotifyWholesaleServices", []string{"RSM-019", "RSM-017"}, 7, 30, 20, 4000, 0},
	{"MarketRoles", "ConfirmRequestChangeOfSupplier", []string{"RSM-001"}, 6, 60, 1, 3, 0},
	{"MarketRoles", "GenericNotification", []string{"RSM-004", "RSM-005"}, 6, 20, 1, 2, 0},
	{"MeteringPoints", "AccountingPointCharacteristics", []string{"RSM-022", "RSM-021"}, 9, 10, 2, 9, 0},
	{"MeteringPoints", "ConfirmRequestChangeAccountingPointCharacteristics", []string{"RSM-021"}, 6, 60, 1, 2, 0},
	{"Charges", "NotifyPriceList", []string{"RSM-034"}, 5, 10, 1, 5, 100},
	{"Charges", "ConfirmRequestChangeOfPriceList", []string{"RSM-033"}, 3, 60, 1, 2, 100},
}

// heavy is the weight, in KB, of a rare event that exceeds the maximum weight
// of a bundle.
const heavy = 60_000

// New generates a day with this number of events, and a backlog.
func New(events, backlog int, seed uint64) *Market {
	g := NewGenerator(seed, 0x6d61726b6574)
	m := &Market{Actors: slices.Clone(participants)}
	for i := range m.Actors {
		m.Actors[i].GLN = NewGLN(fmt.Sprintf("579%03d%06d", i, g.IntN(1_000_000)))
	}
	// The backlog contains readings of the minimum weight, so that they fill
	// the largest possible bundle, which spans six drawers.
	old := Kinds[0]
	old.alone, old.min, old.max, old.payload = 0, 1, 1, 0
	yesterday := Day.Add(-24 * time.Hour)
	for range backlog {
		m.Backlog = append(m.Backlog, g.Event(&m.Actors[BacklogOwner], &old, yesterday))
	}
	for _, at := range g.randomTimes(events) {
		m.Day = append(m.Day, g.Event(pickByShare(g, m.Actors, func(a *Actor) int { return a.share }),
			pickByShare(g, Kinds, func(k *Kind) int { return k.share }), at))
	}
	return m
}

// A Generator generates random events, which depend only on its seed and
// stream.
type Generator struct{ *rand.Rand }

// NewGenerator returns a generator. Different streams of the same seed are
// independent.
func NewGenerator(seed, stream uint64) *Generator {
	return &Generator{rand.New(rand.NewPCG(seed, stream))}
}

// Day is the date of the simulated day.
var Day = time.Date(2026, time.January, 14, 0, 0, 0, 0, time.UTC)

// byHour is the relative number of events in each hour of the day: readings
// arrive at night, people move and switch suppliers in the morning, and
// invoices are computed after lunch.
var byHour = [24]int{9, 9, 8, 6, 4, 3, 2, 3, 5, 7, 8, 7, 5, 6, 7, 6, 4, 3, 2, 2, 2, 3, 4, 6}

// randomTimes returns n random times of the day, in ascending order.
func (g *Generator) randomTimes(n int) []time.Time {
	hours := make([]int, 24)
	for h := range hours {
		hours[h] = h
	}
	at := make([]time.Time, n)
	for i := range at {
		hour := *pickByShare(g, hours, func(h *int) int { return byHour[*h] })
		at[i] = Day.Add(time.Duration(hour)*time.Hour + time.Duration(g.Int64N(int64(time.Hour))))
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// Event returns a random event of kind k for the actor to. at is the time in
// the payload.
func (g *Generator) Event(to *Actor, k *Kind, at time.Time) Event {
	e := Event{
		ID:               g.UUID(),
		Recipient:        to.GLN,
		Origin:           k.Origin,
		ContentType:      k.ContentType,
		DocumentType:     k.DocumentTypes[g.IntN(len(k.DocumentTypes))],
		SupportsBundling: g.IntN(1000) >= k.alone,
		Weight:           k.min + g.Int64N(k.max-k.min+1),
	}
	switch {
	case g.IntN(100) < k.payload:
		e.Payload = g.makeDocument(&e, to, at)
		e.Weight = max(e.Weight, (int64(len(e.Payload))+1023)/1024)
	case k.max > 1000 && g.IntN(500) == 0:
		e.Weight = heavy
	}
	return e
}

// pickByShare returns a random element. The probability of each element is
// proportional to its share.
func pickByShare[T any](g *Generator, from []T, share func(*T) int) *T {
	total := 0
	for i := range from {
		total += share(&from[i])
	}
	n := g.IntN(total)
	for i := range from {
		if n -= share(&from[i]); n < 0 {
			return &from[i]
		}
	}
	panic("shares add up to less than their sum")
}

// UUID returns a random UUID of version 4.
func (g *Generator) UUID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], g.Uint64())
	binary.BigEndian.PutUint64(b[8:], g.Uint64())
	return uuid.Must(uuid.NewRandomFromReader(bytes.NewReader(b[:]))).String()
}

// AppendJSON appends the event in the JSON format that a domain sends. The
// event's texts are ASCII, so their Go quoting is valid JSON.
func (e *Event) AppendJSON(b []byte) []byte {
	field := func(name, text string) {
		b = append(b, `"`+name+`":`...)
		b = strconv.AppendQuote(b, text)
		b = append(b, ',')
	}
	b = append(b, '{')
	field("id", e.ID)
	field("recipient", e.Recipient)
	field("origin", e.Origin)
	field("contentType", e.ContentType)
	field("documentType", e.DocumentType)
	b = append(b, `"supportsBundling":`...)
	b = strconv.AppendBool(b, e.SupportsBundling)
	b = append(b, `,"weight":`...)
	b = strconv.AppendInt(b, e.Weight, 10)
	if e.Payload != nil {
		b = append(b, `,"payload":`...)
		b = append(b, e.Payload...)
	}
	return append(b, '}')
}

// Cabinet returns the name of the event's cabinet, which is unique among the
// cabinets of the recipient.
func (e *Event) Cabinet() string { return e.Origin + "|" + e.ContentType }
