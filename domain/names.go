package domain

// An ActorID names a recipient of data: the actor that peeks and dequeues. Only ParseActorID
// creates one, so every ActorID except the zero value is valid.
type ActorID struct{ s string }

// ParseActorID accepts 1 to 64 of the characters A-Z a-z 0-9 . _ -, for example a UUID or a
// 13-digit GLN. Any other text is an Invalid error.
func ParseActorID(s string) (ActorID, error) {
	if err := checkName("actor id", s); err != nil {
		return ActorID{}, err
	}
	return ActorID{s}, nil
}

// String returns the id as it was parsed.
func (a ActorID) String() string { return a.s }

// IsZero reports whether a names no actor.
func (a ActorID) IsZero() bool { return a.s == "" }

// An Origin names the domain of the market that sends data.
type Origin struct{ s string }

// The origins of the energy market. A configuration may add further origins.
var (
	Charges        = Origin{"Charges"}
	TimeSeries     = Origin{"TimeSeries"}
	Aggregations   = Origin{"Aggregations"}
	MarketRoles    = Origin{"MarketRoles"}
	MeteringPoints = Origin{"MeteringPoints"}
)

// ParseOrigin accepts the texts that ParseActorID accepts. It does not check whether the hub knows
// the origin: see Groups.GroupOf.
func ParseOrigin(s string) (Origin, error) {
	if err := checkName("origin", s); err != nil {
		return Origin{}, err
	}
	return Origin{s}, nil
}

// String returns the origin as it was parsed.
func (o Origin) String() string { return o.s }

// IsZero reports whether o names no domain.
func (o Origin) IsZero() bool { return o.s == "" }

// A ContentType names the kind of data that an event announces. Content types are case-sensitive.
type ContentType struct{ s string }

// ParseContentType accepts 1 to 128 printable ASCII characters without commas and without leading
// or trailing blanks.
func ParseContentType(s string) (ContentType, error) {
	if err := checkLabel("content type", s); err != nil {
		return ContentType{}, err
	}
	return ContentType{s}, nil
}

// String returns the content type as it was parsed.
func (c ContentType) String() string { return c.s }

// A DocumentType is the recipient's name for a kind of document. The types in a bundle are sent in
// an HTTP header, joined by commas.
type DocumentType struct{ s string }

// ParseDocumentType accepts the texts that ParseContentType accepts.
func ParseDocumentType(s string) (DocumentType, error) {
	if err := checkLabel("document type", s); err != nil {
		return DocumentType{}, err
	}
	return DocumentType{s}, nil
}

// String returns the document type as it was parsed.
func (d DocumentType) String() string { return d.s }

const (
	maxName  = 64
	maxLabel = 128
)

func checkName(what, s string) error {
	if n := len(s); n < 1 || n > maxName {
		return Errorf(Invalid, "%s: want 1 to %d characters, got %d", what, maxName, n)
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return Errorf(Invalid, "%s: want only A-Z a-z 0-9 . _ -, got %q", what, Shorten(s))
		}
	}
	return nil
}

func checkLabel(what, s string) error {
	if n := len(s); n < 1 || n > maxLabel {
		return Errorf(Invalid, "%s: want 1 to %d characters, got %d", what, maxLabel, n)
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == ',' {
			return Errorf(Invalid, "%s: want printable ASCII without commas, got %q", what, Shorten(s))
		}
	}
	if s[0] == ' ' || s[len(s)-1] == ' ' {
		return Errorf(Invalid, "%s: want no blank at either end, got %q", what, Shorten(s))
	}
	return nil
}
