package objecttest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// Sequencers maps the names of sequencers in the tables to the sequencers. A script can also
// contain a sequencer itself.
var Sequencers = map[string]string{
	"Z": "0055AED6DCD90281E3", "C1": "0055AED6DCD90281E4", "N": "0055AED6DCD90281E5",
	"D1": "0055AED6DCD90281E6", "C2": "0055AED6DCD90281E7", "D2": "0055AED6DCD90281E9",
	"C17": "0055AED6DCD90281E47",
}

// Calls returns the events of a script, by call. Each [...] is a call. An event begins with C for
// Created, D for Deleted, M for a delete marker, or L for a Created in a listing. The event
// continues with @ and a sequencer, or @- for a null sequencer. The remaining parts are optional:
// /version, +seconds after FirstMoment, and ! for an unknown time. Events with null sequencers
// come from different messages.
//
//	[C@C1] [D@-/v2+5, C@C2]
func Calls(script string) (all [][]domain.ObjectEvent) {
	nulls := 0
	for call := range strings.SplitSeq(script, "[") {
		call, _, isCall := strings.Cut(call, "]")
		if !isCall {
			continue
		}
		var events []domain.ObjectEvent
		for text := range strings.SplitSeq(call, ",") {
			e := parseEvent(strings.TrimSpace(text))
			if e.Sequencer.IsNull() {
				nulls++
				e.Carrier = domain.Carrier{Message: fmt.Sprint("message-", nulls)}
			}
			events = append(events, e)
		}
		all = append(all, events)
	}
	return all
}

// FirstMoment is the time of an event without a time in the script.
var FirstMoment = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func parseEvent(text string) domain.ObjectEvent {
	e := domain.ObjectEvent{Time: FirstMoment}
	rest, isTimeless := strings.CutSuffix(text, "!")
	if isTimeless {
		e.Time = time.Time{}
	}
	if before, seconds, ok := strings.Cut(rest, "+"); ok {
		rest, e.Time = before, e.Time.Add(time.Duration(must(strconv.Atoi(seconds)))*time.Second)
	}
	rest, version, _ := strings.Cut(rest, "/")
	e.Version = must(domain.ParseVersionID(version))
	kind, sequencer, _ := strings.Cut(rest, "@")
	switch kind {
	case "C":
		e.Type = domain.ObjectCreated
	case "L":
		e.Type, e.Reason = domain.ObjectCreated, domain.Crawl
	case "D", "M":
		e.Type, e.Marker = domain.ObjectDeleted, kind == "M"
	default:
		panic("no event: " + text)
	}
	if sequencer != "-" {
		if s := Sequencers[sequencer]; s != "" {
			sequencer = s
		}
		e.Sequencer = must(domain.ParseSequencer(domain.HexSequencer, sequencer))
	}
	return e
}

// Describe returns the text of all rows of an object, in a form similar to a script. A current row
// ends with +, any other row with ·. The number of duplicates follows, unless it is 0. rows must be
// in order.
func Describe(rows []domain.ObjectRow, current *domain.ObjectRow) string {
	var b strings.Builder
	for i := range rows {
		r, mark := &rows[i], "·"
		if current != nil && current.ID() == r.ID() {
			mark = "+"
		}
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(describeEvent(r) + mark)
		if r.Duplicates > 0 {
			fmt.Fprint(&b, r.Duplicates)
		}
	}
	return b.String()
}

func describeEvent(r *domain.ObjectRow) string {
	kind := "C"
	switch {
	case r.IsMarker():
		kind = "M"
	case r.Type == domain.ObjectDeleted:
		kind = "D"
	}
	text := kind + "@" + nameOf(r)
	if r.Version != (domain.VersionID{}) {
		text += "/" + r.Version.String()
	}
	return text
}

// nameOf returns the name of a sequencer in the tables. A generated sequencer is named by its base
// and its number, as in C1-01; the base 0 is the null sequencer.
func nameOf(r *domain.ObjectRow) string {
	text, name := r.Sequencer.String(), ""
	if r.IsGenerated() {
		text = r.Base.String()
		if text == "" {
			text = "0"
		}
	}
	name = text
	for n, s := range Sequencers {
		if s == text {
			name = n
		}
	}
	if r.IsGenerated() {
		return fmt.Sprintf("%s-%02d", name, r.Number)
	}
	return name
}

// DescribePairs returns the text of the pairs of rows in paired mode. The text of a pair is
// {created,deleted}, then number_reordered unless it is 0, and d with the number of duplicates
// unless it is 0.
func DescribePairs(rows []domain.ObjectRow) string {
	var all []string
	for _, p := range domain.PairRows(rows) {
		created, deleted, version := "–", "–", ""
		for _, r := range []*domain.ObjectRow{p.Created, p.Deleted} {
			switch {
			case r == nil:
				continue
			case r.Type == domain.ObjectCreated:
				created = nameOf(r)
			default:
				deleted = nameOf(r)
				if r.IsMarker() {
					deleted += " marker"
				}
			}
			if r.Version != (domain.VersionID{}) {
				version = r.Version.String()
			}
		}
		text := version + "{" + created + "," + deleted + "}"
		if n := p.Reordered(); n > 0 {
			text += fmt.Sprint(n)
		}
		if n := p.Duplicates(); n > 0 {
			text += fmt.Sprint("d", n)
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
