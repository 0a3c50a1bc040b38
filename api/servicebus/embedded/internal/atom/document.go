package atom

import (
	"encoding/xml"
	"time"
)

const (
	countSpace    = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
	busSpace      = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
	instanceSpace = "http://www.w3.org/2001/XMLSchema-instance"
	schemaSpace   = "http://www.w3.org/2001/XMLSchema"
)

type errorDocument struct {
	XMLName xml.Name `xml:"Error"`
	Code    int
	Detail  string
}

type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Entries []atomEntry `xml:"entry"`
}

type atomEntry struct {
	XMLName   xml.Name     `xml:"http://www.w3.org/2005/Atom entry"`
	ID        string       `xml:"id"`
	Title     string       `xml:"title"`
	Published string       `xml:"published,omitempty"`
	Updated   string       `xml:"updated"`
	Content   entryContent `xml:"content"`
}

type entryContent struct {
	Type        string `xml:"type,attr"`
	Description any
}

type namespaceInfo struct {
	XMLName       xml.Name `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect NamespaceInfo"`
	CreatedTime   string
	MessagingSKU  string
	ModifiedTime  string
	Name          string
	NamespaceType string
}

// A description is the XML element that describes a queue, topic, subscription or rule. The element name tells which. A
// member that is missing in the XML is nil.
type description struct {
	XMLName  xml.Name
	Instance string `xml:"xmlns:i,attr,omitempty"` // the namespace that prefix i stands for

	LockDuration                              *string          `xml:",omitempty"`
	MaxSizeInMegabytes                        *int64           `xml:",omitempty"`
	RequiresDuplicateDetection                *bool            `xml:",omitempty"`
	RequiresSession                           *bool            `xml:",omitempty"`
	DefaultMessageTimeToLive                  *string          `xml:",omitempty"`
	DeadLetteringOnMessageExpiration          *bool            `xml:",omitempty"`
	DeadLetteringOnFilterEvaluationExceptions *bool            `xml:",omitempty"`
	DefaultRuleDescription                    *ruleDescription `xml:",omitempty"`
	DuplicateDetectionHistoryTimeWindow       *string          `xml:",omitempty"`
	MaxDeliveryCount                          *uint32          `xml:",omitempty"`
	EnableBatchedOperations                   *bool            `xml:",omitempty"`
	SizeInBytes                               *int64           `xml:",omitempty"`
	MessageCount                              *int64           `xml:",omitempty"`
	Status                                    *string          `xml:",omitempty"`
	ForwardTo                                 *string          `xml:",omitempty"`
	UserMetadata                              *string          `xml:",omitempty"`
	CreatedAt                                 *time.Time       `xml:",omitempty"`
	UpdatedAt                                 *time.Time       `xml:",omitempty"`
	AccessedAt                                *time.Time       `xml:",omitempty"`
	SupportOrdering                           *bool            `xml:",omitempty"`
	CountDetails                              *countDetails    `xml:",omitempty"`
	SubscriptionCount                         *int             `xml:",omitempty"`
	SQLFilterCount                            *int             `xml:"SqlFilterCount,omitempty"`
	CorrelationFilterCount                    *int             `xml:",omitempty"`
	AutoDeleteOnIdle                          *string          `xml:",omitempty"`
	EnablePartitioning                        *bool            `xml:",omitempty"`
	EnableExpress                             *bool            `xml:",omitempty"`
	EntityAvailabilityStatus                  *string          `xml:",omitempty"`
	ForwardDeadLetteredMessagesTo             *string          `xml:",omitempty"`
	MaxMessageSizeInKilobytes                 *int64           `xml:",omitempty"`

	// Only the description of a rule has the following members.
	Filter *filterDescription `xml:",omitempty"`
	Action *actionDescription `xml:",omitempty"`
	Name   *string            `xml:",omitempty"`
}

// countDetails are the message counts of an entity. Some clients search for the declaration of their XML namespace and
// find the elements by prefix.
type countDetails struct {
	Space                          string `xml:"xmlns:d2p1,attr"`
	ActiveMessageCount             int64  `xml:"d2p1:ActiveMessageCount"`
	DeadLetterMessageCount         int64  `xml:"d2p1:DeadLetterMessageCount"`
	ScheduledMessageCount          int64  `xml:"d2p1:ScheduledMessageCount"`
	TransferMessageCount           int64  `xml:"d2p1:TransferMessageCount"`
	TransferDeadLetterMessageCount int64  `xml:"d2p1:TransferDeadLetterMessageCount"`
}

// A typeName is the type of a filter, action or value element. It is decoded by XML namespace, and encoded with the
// prefix that clients expect.
type typeName string

// MarshalXMLAttr implements xml.MarshalerAttr.
func (n typeName) MarshalXMLAttr(xml.Name) (xml.Attr, error) {
	return xml.Attr{Name: xml.Name{Local: "i:type"}, Value: string(n)}, nil
}

type ruleDescription struct {
	Filter *filterDescription `xml:",omitempty"`
	Action *actionDescription `xml:",omitempty"`
	Name   string             `xml:",omitempty"`
}

type filterDescription struct {
	Type             typeName    `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
	CorrelationID    string      `xml:"CorrelationId,omitempty"`
	MessageID        string      `xml:"MessageId,omitempty"`
	To               string      `xml:",omitempty"`
	ReplyTo          string      `xml:",omitempty"`
	Label            string      `xml:",omitempty"`
	SessionID        string      `xml:"SessionId,omitempty"`
	ReplyToSessionID string      `xml:"ReplyToSessionId,omitempty"`
	ContentType      string      `xml:",omitempty"`
	Properties       *properties `xml:",omitempty"`
	SQLExpression    *string     `xml:"SqlExpression,omitempty"`
	Parameters       *properties `xml:",omitempty"`
}

type actionDescription struct {
	Type          typeName    `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
	SQLExpression string      `xml:"SqlExpression,omitempty"`
	Parameters    *properties `xml:",omitempty"`
}

type properties struct {
	List []propertyEntry `xml:"KeyValueOfstringanyType"`
}

type propertyEntry struct {
	Key   string
	Value typedValue
}

type typedValue struct {
	Type typeName `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
	// Space is the XML namespace that the prefix in Type stands for.
	Space string `xml:"xmlns:d6p1,attr,omitempty"`
	Text  string `xml:",chardata"`
}

// formatTime formats a time as RFC 3339, in UTC.
func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
