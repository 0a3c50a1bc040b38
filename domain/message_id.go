package domain

import (
	"strconv"
	"strings"
)

// messagePrefix is the start of the ids that the hub gives to the messages of a channel. A producer
// cannot choose an id of this form.
const messagePrefix = "m"

// MessageID returns the id of the message in entry e of a channel, for example m0.17.
func (e EntryID) MessageID() string { return messagePrefix + e.String() }

// ParseMessageID reads the text of [EntryID.MessageID]. It returns false for any other text, so
// each message has exactly one id.
func ParseMessageID(s string) (EntryID, bool) {
	text, hasPrefix := strings.CutPrefix(s, messagePrefix)
	priority, number, isPair := strings.Cut(text, ".")
	p, err := strconv.Atoi(priority)
	if err != nil || !hasPrefix || !isPair || p < 0 || p >= Priorities {
		return EntryID{}, false
	}
	n, err := strconv.ParseInt(number, 10, 64)
	e := EntryID{Priority: p, Number: n}
	return e, err == nil && n >= 0 && e.MessageID() == s
}
