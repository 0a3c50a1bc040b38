package objects

import (
	"math"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// The kinds of documents. The member kind of a document contains the Name of its kind.
var (
	bucketDocument = client.DocumentKind{Name: "bucket", Format: 1}
	objectDocument = client.DocumentKind{Name: "object", Format: 1}
	rowDocument    = client.DocumentKind{Name: "row", Format: 1}
	headDocument   = client.DocumentKind{Name: "head", Format: 1}
	sweepDocument  = client.DocumentKind{Name: "sweep", Format: 1}
)

// A bucketDoc contains the number of shards of a bucket.
type bucketDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Bucket       string `json:"bucket"`
	Shards       int    `json:"shards"`
	client.FormatNumber
}

func (*bucketDoc) DocumentKind() client.DocumentKind { return bucketDocument }

func (d *bucketDoc) Validate() error {
	if d.Shards < 1 || d.Shards > maxShards {
		return domain.Errorf(domain.Damaged, "a bucket has 1 to %d shards, not %d", maxShards, d.Shards)
	}
	return nil
}

// An objectDoc is a domain.Object as it is stored.
type objectDoc struct {
	ID           string      `json:"id"`
	PartitionKey string      `json:"partitionKey"`
	Kind         string      `json:"kind"`
	Bucket       string      `json:"bucket"`
	Key          string      `json:"key"`
	Live         bool        `json:"live,omitempty"` // whether the object has a current row
	Current      *rowFields  `json:"current,omitempty"`
	Rows         []rowFields `json:"rows"`
	Events       int64       `json:"events"`
	Duplicates   int64       `json:"duplicates,omitempty"`
	Generated    int64       `json:"generated,omitempty"`
	Doubt        bool        `json:"doubt,omitempty"`
	Floor        *orderDoc   `json:"floor,omitempty"`
	Spilled      int64       `json:"spilled,omitempty"`
	Versions     []string    `json:"spilledVersions,omitempty"`
	SpilledPlace int64       `json:"spilledGenerated,omitempty"`
	SpilledTo    string      `json:"spilledTo,omitempty"`
	Forgotten    *orderDoc   `json:"forgotten,omitempty"`
	ForgottenTo  string      `json:"forgottenTo,omitempty"`
	ForgottenN   int64       `json:"forgottenRows,omitempty"`
	Writes       []string    `json:"writes"`
	IsWatched    bool        `json:"watched,omitempty"`
	Changes      int64       `json:"changes,omitempty"` // version of the last change for watches
	StateVersion int64       `json:"stateVersion,omitempty"`
	ETag         azcore.ETag `json:"_etag,omitempty"`
	client.Document
}

func (*objectDoc) DocumentKind() client.DocumentKind { return objectDocument }

// An orderDoc is a domain.ObjectOrder as it is stored.
type orderDoc struct {
	Base      string `json:"base,omitempty"`
	Rank      int    `json:"rank,omitempty"`
	After     string `json:"after,omitempty"` // number as text, because a JSON number would not be exact
	Time      string `json:"time,omitempty"`  // time as text, because a JSON number would not be exact
	Number    int64  `json:"number,omitempty"`
	Type      int    `json:"type,omitempty"`
	Version   string `json:"version,omitempty"`
	Sequencer string `json:"sequencer,omitempty"`
}

// A rowDoc is a spilled row, or the copy of the newest spilled row of a version.
type rowDoc struct {
	ID           string      `json:"id"`
	PartitionKey string      `json:"partitionKey"`
	Kind         string      `json:"kind"`
	Object       string      `json:"object"` // id of the object's document
	Version      string      `json:"version,omitempty"`
	Order        string      `json:"order,omitempty"` // order of the row, formatted by orderText; empty in the copy of a row
	Live         any         `json:"live,omitempty"`  // only in the copy of a row: orderText of the row if the row is live, otherwise false
	Row          rowFields   `json:"row"`
	Micros       float64     `json:"micros"` // time of the event in microseconds, for queries
	IsGenerated  bool        `json:"isGenerated,omitempty"`
	IsAnchor     bool        `json:"isAnchor,omitempty"` // whether rows with generated places may follow this row
	ETag         azcore.ETag `json:"_etag,omitempty"`
	client.Document
}

func (d *rowDoc) DocumentKind() client.DocumentKind {
	if d.Kind == headDocument.Name {
		return headDocument
	}
	return rowDocument
}

// rowFields is the part of a domain.ObjectRow that the object and its spilled rows store in the same
// form.
type rowFields struct {
	Version    string `json:"version,omitempty"` // empty for the null version
	Type       int    `json:"type"`
	IsMarker   bool   `json:"marker,omitempty"`
	Form       int    `json:"form,omitempty"`
	Sequencer  string `json:"sequencer,omitempty"`
	Message    string `json:"message,omitempty"`
	Index      int    `json:"index,omitempty"`
	Time       string `json:"time,omitempty"`
	Size       string `json:"size,omitempty"` // number as text, because a JSON number above 2^53 would not be exact
	ETag       string `json:"eTag,omitempty"`
	SHA256     string `json:"sha256,omitempty"`
	Class      string `json:"storageClass,omitempty"`
	Archive    string `json:"archiveStatus,omitempty"`
	Modified   string `json:"lastModified,omitempty"`
	Reason     string `json:"reason,omitempty"`
	IngestID   string `json:"ingestId,omitempty"`
	Attributes string `json:"attributes,omitempty"`
	Patches    string `json:"patches,omitempty"`
	BaseForm   int    `json:"baseForm,omitempty"`
	Base       string `json:"base,omitempty"`
	Rank       int    `json:"rank,omitempty"`
	After      string `json:"after,omitempty"`
	Number     int64  `json:"number,omitempty"`
	Duplicates int64  `json:"duplicates,omitempty"`
	Reordered  int64  `json:"reordered,omitempty"`
	WriteID    string `json:"writeId,omitempty"`
}

func encodeRow(r *domain.ObjectRow) rowFields {
	f := rowFields{
		Version: versionText(r.Version), Type: int(r.Type), IsMarker: r.Marker,
		Form: int(r.Sequencer.Form()), Sequencer: r.Sequencer.String(), Message: r.Carrier.Message, Index: r.Carrier.Index,
		Time: timeText(r.Time), ETag: r.ETag, SHA256: r.SHA256, Class: r.StorageClass, Archive: r.ArchiveStatus,
		Modified: timeText(r.LastModified), Reason: string(r.Reason), IngestID: r.IngestID, Attributes: r.Attributes, Patches: r.Patches,
		BaseForm: int(r.Base.Form()), Base: r.Base.String(), Rank: int(r.Rank), After: timeText(r.After), Number: r.Number,
		Duplicates: r.Duplicates, Reordered: r.Reordered, WriteID: r.WriteID,
	}
	if r.Size != nil {
		f.Size = strconv.FormatInt(*r.Size, 10)
	}
	return f
}

// A documentParser parses members of a document, and retains the first error.
type documentParser struct{ err error }

func (p *documentParser) keepError(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *documentParser) time(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	p.keepError(err)
	return t
}

func (p *documentParser) version(s string) domain.VersionID {
	v, err := domain.ParseVersionID(s)
	p.keepError(err)
	return v
}

func (p *documentParser) sequencer(form int, s string) domain.Sequencer {
	if form == 0 {
		return domain.Sequencer{}
	}
	sequencer, err := domain.ParseSequencer(domain.SequencerForm(form), s)
	p.keepError(err)
	return sequencer
}

func (p *documentParser) number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	p.keepError(err)
	return n
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (p *documentParser) parseRow(f *rowFields) domain.ObjectRow {
	r := domain.ObjectRow{
		ObjectEvent: domain.ObjectEvent{
			Version: p.version(f.Version), Type: domain.ObjectEventType(f.Type), Marker: f.IsMarker,
			Sequencer: p.sequencer(f.Form, f.Sequencer), Carrier: domain.Carrier{Message: f.Message, Index: f.Index},
			Time: p.time(f.Time),
			ObjectFacts: domain.ObjectFacts{
				ETag: f.ETag, SHA256: f.SHA256, StorageClass: f.Class, ArchiveStatus: f.Archive,
				LastModified: p.time(f.Modified), Reason: domain.ObjectReason(f.Reason), IngestID: f.IngestID, Attributes: f.Attributes, Patches: f.Patches,
			},
		},
		Base: p.sequencer(f.BaseForm, f.Base), Rank: domain.PlacementRank(f.Rank), After: p.time(f.After), Number: f.Number,
		Duplicates: f.Duplicates, Reordered: f.Reordered, WriteID: f.WriteID,
	}
	if f.Size != "" {
		size := p.number(f.Size)
		r.Size = &size
	}
	return r
}

// newObjectDoc returns the document of an object. It copies the unknown members of replaced, the
// document that the new document replaces. replaced is nil for a new object.
func newObjectDoc(key string, o *domain.Object, replaced *objectDoc) *objectDoc {
	d := &objectDoc{
		ID: objectID(o.Name.Key()), PartitionKey: key, Kind: objectDocument.Name, Bucket: o.Name.Bucket(), Key: o.Name.Key(),
		Live: o.Current != nil, Events: o.Events, Duplicates: o.Duplicates, Generated: o.Generated, Doubt: o.Doubt,
		Spilled: o.Spilled, SpilledPlace: o.SpilledGenerated, SpilledTo: timeText(o.SpilledTo), Writes: o.Writes,
		Floor: newOrderDoc(o.Floor), Forgotten: newOrderDoc(o.Forgotten), ForgottenTo: timeText(o.ForgottenTo), ForgottenN: o.ForgottenRows,
		IsWatched: o.IsWatched, Changes: o.Changes, StateVersion: o.StateVersion,
	}
	if replaced != nil {
		d.Document = replaced.Document
	}
	if o.Current != nil {
		current := encodeRow(o.Current)
		d.Current = &current
	}
	for i := range o.Rows {
		d.Rows = append(d.Rows, encodeRow(&o.Rows[i]))
	}
	for _, v := range o.SpilledVersions {
		d.Versions = append(d.Versions, versionText(v))
	}
	return d
}

// newOrderDoc returns o as it is stored, and nil for the zero order.
func newOrderDoc(o domain.ObjectOrder) *orderDoc {
	if o == (domain.ObjectOrder{}) {
		return nil
	}
	return &orderDoc{
		Base: o.Base, Rank: int(o.Rank), After: strconv.FormatInt(o.After, 10), Time: strconv.FormatInt(o.Time, 10), Number: o.Number,
		Type: int(o.Type), Version: versionText(o.Version), Sequencer: o.Sequencer,
	}
}

func (p *documentParser) parseOrder(d *orderDoc) domain.ObjectOrder {
	if d == nil {
		return domain.ObjectOrder{}
	}
	o := domain.ObjectOrder{
		Base: d.Base, Rank: domain.PlacementRank(d.Rank), Time: p.number(d.Time), Number: d.Number,
		Type: domain.ObjectEventType(d.Type), Version: p.version(d.Version), Sequencer: d.Sequencer,
	}
	switch {
	case d.After != "":
		o.After = p.number(d.After)
	case o.Rank == domain.OverRow: // an older version stored the order without the member after, because no row could follow an over row
		o.After = o.Time
	}
	return o
}

// object decodes the object in d.
func (d *objectDoc) object() (domain.Object, error) {
	var p documentParser
	name, err := domain.ParseObjectName(d.Bucket, d.Key)
	p.keepError(err)
	o := domain.Object{
		Name: name, Events: d.Events, Duplicates: d.Duplicates, Generated: d.Generated, Doubt: d.Doubt,
		Spilled: d.Spilled, SpilledGenerated: d.SpilledPlace, SpilledTo: p.time(d.SpilledTo), Writes: d.Writes,
		Floor: p.parseOrder(d.Floor), Forgotten: p.parseOrder(d.Forgotten), ForgottenTo: p.time(d.ForgottenTo), ForgottenRows: d.ForgottenN,
		IsWatched: d.IsWatched, Changes: d.Changes, StateVersion: d.StateVersion,
	}
	if d.Current != nil {
		current := p.parseRow(d.Current)
		o.Current = &current
	}
	for i := range d.Rows {
		o.Rows = append(o.Rows, p.parseRow(&d.Rows[i]))
	}
	for _, v := range d.Versions {
		o.SpilledVersions = append(o.SpilledVersions, p.version(v))
	}
	return o, d.damageError(p.err)
}

func (d *objectDoc) damageError(err error) error {
	if err == nil {
		return nil
	}
	return domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, err)
}

// newRowDoc returns the document of a spilled row of an object.
func newRowDoc(partition, key string, r *domain.ObjectRow) *rowDoc {
	return &rowDoc{
		ID: rowID(key, r.ID()), PartitionKey: partition, Kind: rowDocument.Name, Object: objectID(key), Version: versionText(r.Version),
		Order: orderText(r.Order()), Row: encodeRow(r), Micros: micros(r.Time),
		IsGenerated: r.IsGenerated(), IsAnchor: r.IsAnchor(),
	}
}

// newHeadDoc returns the copy of r, where r is the newest spilled row of its version.
func newHeadDoc(partition, key string, r *domain.ObjectRow) *rowDoc {
	d := &rowDoc{
		ID: headID(key, r.Version), PartitionKey: partition, Kind: headDocument.Name, Object: objectID(key),
		Version: versionText(r.Version), Live: false, Row: encodeRow(r), Micros: micros(r.Time),
	}
	if r.IsLive() {
		d.Live = orderText(r.Order())
	}
	return d
}

func (d *rowDoc) toRow() (domain.ObjectRow, error) {
	var p documentParser
	r := p.parseRow(&d.Row)
	if p.err != nil {
		return r, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return r, nil
}

// micros returns t in microseconds since 1970. The zero time sorts before all other times.
func micros(t time.Time) float64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return float64(t.UnixMicro())
}
