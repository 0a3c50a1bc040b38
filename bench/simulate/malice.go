package simulate

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A vandal who knows what a hub reads does damage that chance hardly ever does.

// aims damages one thing that somebody is about to use, and says how. It does not always
// find it.
func (v *vandal) aims(recipient string) string {
	all := v.w.shelf.documentsOf(recipient)
	of := func(kind string) (found []document) {
		for _, d := range all {
			if d.kind() == kind {
				found = append(found, d.copied())
			}
		}
		return found
	}
	one := func(kind string) *document {
		if found := of(kind); len(found) > 0 {
			return &found[v.d.n(len(found))]
		}
		return nil
	}
	v.w.reached("something was damaged")
	kind := v.d.n(12)
	if v.w.strike.Load() && v.d.n(2) == 0 { // what waits for its domain
		kind = []int{7, 9, 10, 10}[v.d.n(4)]
	}
	switch kind {
	case 0, 11:
		return v.ages(of("bundle"), one("page"))
	case 1:
		return v.renames(one("head"))
	case 2:
		return v.repages(one("page"))
	case 3:
		return v.doubles(of("page"))
	case 4:
		return v.notes(recipient)
	case 5:
		return v.breaks(one("drawer"), "weight", "position", "sealed", "count", "operation")
	case 6:
		return v.breaks(one("entry"), "nextSequence", "ordinal")
	case 7:
		return v.loses(of("bundle"), one("page"))
	case 8:
		return v.removes(one([]string{"drawer", "page", "bundle", "entry", "gate"}[v.d.n(5)]))
	case 9:
		if v.d.n(4) == 0 {
			return v.breaks(one("record"), "group", "bundle")
		}
		d := one("bundle")
		if open := v.open(of("bundle")); open != nil && v.d.n(3) > 0 {
			d = open
		}
		return v.breaks(d, "count", "format", "group", "cabinet", "content", "bodyDigest", "state", "ranges")
	case 10:
		return v.troubles(of("bundle"))
	default:
		var objects []string
		for _, d := range inUse(all) {
			objects = append(objects, d.objects()...)
		}
		if len(objects) == 0 {
			return "finds nothing"
		}
		return v.damageObject(objects[v.d.n(len(objects))])
	}
}

// open returns one of bundles that is open, nil if none is.
func (v *vandal) open(bundles []document) *document {
	bundles = slices.DeleteFunc(bundles, func(d document) bool { return d.fields["state"] != "open" })
	if len(bundles) == 0 {
		return nil
	}
	return &bundles[v.d.n(len(bundles))]
}

func (v *vandal) put(d *document, how string) string {
	if d == nil {
		return "finds nothing"
	}
	return d.kind() + " " + d.id + " " + how + refusal(v.door.put(context.WithoutCancel(v.w.ctx), *d))
}

// ages makes the open bundles as an older version has left them, and perhaps damages a
// page.
func (v *vandal) ages(bundles []document, page *document) string {
	how := "finds no bundle"
	for _, d := range bundles {
		if d.fields["state"] == "open" {
			wrong := v.d.n(3)
			if wrong > 0 {
				delete(d.fields, "bodyLength")
				delete(d.fields, "bodyDigest")
			}
			if wrong < 2 {
				d.fields["count"] = v.miscounted(d.fields["count"])
			}
			how = v.put(&d, "is as old ones are")
		}
	}
	switch {
	case page == nil:
	case v.d.n(3) == 0:
		how += ", and page " + page.id + " is missing" + refusal(v.door.remove(context.WithoutCancel(v.w.ctx), *page))
	case v.d.n(2) == 0:
		page.fields["events"] = "AAAA"
		how += ", and " + v.put(page, "is nonsense")
	}
	return how
}

// miscounted is one more or less than a number.
func (v *vandal) miscounted(count any) any {
	n, _ := count.(json.Number)
	events, err := n.Int64()
	if err != nil {
		return count
	}
	return events + int64(1-2*v.d.n(2))
}

// renames has a head name a cabinet that cannot be, or one of nobody.
func (v *vandal) renames(head *document) string {
	if head == nil {
		return "finds no head"
	}
	cabinets, _ := head.fields["cabinets"].(map[string]any)
	names := slices.Sorted(maps.Keys(cabinets))
	if len(names) == 0 {
		return "finds no cabinet"
	}
	other := strangeNames[v.d.n(len(strangeNames))]
	if v.d.n(3) == 0 {
		retention, ok := head.fields["retention"].(map[string]any)
		if !ok {
			retention = make(map[string]any)
		}
		retention[other] = map[string]any{"floor": 3}
		head.fields["retention"] = retention
		return v.put(head, fmt.Sprintf("retains a cabinet %q", other))
	}
	cabinets[other] = copied(cabinets[names[0]])
	if v.d.n(2) == 0 {
		delete(cabinets, names[0])
	}
	return v.put(head, fmt.Sprintf("has a cabinet %q", other))
}

// repages makes a page one that is sound by its checksum, and that no version writes.
func (v *vandal) repages(page *document) string {
	if page == nil {
		return "finds no page"
	}
	text, _ := page.fields["events"].(string)
	events, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(events) < 5 {
		return "finds no events"
	}
	end, at := len(events)-4, 0
	if v.d.n(3) > 0 {
		at = v.d.n(end)
	}
	events[at] ^= 1 << v.d.n(8)
	v.forged = true
	binary.LittleEndian.PutUint32(events[end:], repository.SumOf(events[:end]))
	page.fields["events"] = base64.StdEncoding.EncodeToString(events)
	return v.put(page, fmt.Sprintf("has another byte %d, and the checksum of that", at))
}

// doubles has the events of a page be in a second place.
func (v *vandal) doubles(pages []document) string {
	if len(pages) < 2 {
		return "finds no two pages"
	}
	i := v.d.n(len(pages))
	from, to := pages[i], &pages[(i+1+v.d.n(len(pages)-1))%len(pages)]
	to.fields["events"] = from.fields["events"]
	delete(to.fields, "sum") // as a page of an older version
	v.forged = true
	return v.put(to, "has the events of "+from.id+" of "+from.key)
}

// notes leaves a notice that no Dequeue has left.
func (v *vandal) notes(recipient string) string {
	number := 1 + v.d.n(20)
	group := v.w.plan.groups[v.d.n(len(v.w.plan.groups))]
	d := &document{container: containers.Bundles, key: recipient, id: fmt.Sprintf("notice|%s|%020d", group, number), fields: map[string]any{
		"kind": "notice", "group": group, "number": number, "origin": domain.TimeSeries.String(), "bundle": uuid.Nil.String(), "list": "none", "since": time.Now().UnixMilli(),
	}}
	for _, name := range [...]string{"group", "origin", "bundle"} {
		if v.d.n(6) == 0 {
			d.fields[name] = "|"
		}
	}
	if v.d.n(6) == 0 {
		d.fields["number"] = number + 1
	}
	text, _ := json.Marshal(d.fields) // made of texts and numbers
	return v.put(d, "is "+string(text))
}

// breaks makes one field of a document something else.
func (v *vandal) breaks(d *document, fields ...string) string {
	if d == nil {
		return "finds nothing"
	}
	name := fields[v.d.n(len(fields))]
	if v.d.n(2) == 0 {
		d.fields[name] = mistyped(d.fields[name])
	} else {
		d.fields[name] = changed(v.d, d.fields[name])
	}
	return v.put(d, fmt.Sprintf("has the %s %q", name, fmt.Sprint(d.fields[name])))
}

// removes takes a document away.
func (v *vandal) removes(d *document) string {
	if d == nil {
		return "finds nothing"
	}
	return d.kind() + " " + d.id + " is missing" + refusal(v.door.remove(context.WithoutCancel(v.w.ctx), *d))
}

// troubles makes of what an open bundle says of its domain what nobody can count.
func (v *vandal) troubles(bundles []document) string {
	for _, d := range bundles {
		if trouble, ok := d.fields["trouble"].(map[string]any); ok && d.fields["state"] == "open" {
			trouble["failures"] = "many"
			return v.put(&d, "counts no failures of its domain")
		}
	}
	return "finds no bundle on request"
}

// loses has an open bundle not be there, or what its domain is to read.
func (v *vandal) loses(bundles []document, page *document) string {
	for _, d := range bundles {
		if d.fields["state"] != "open" {
			continue
		}
		if object, _ := d.fields["object"].(string); object != "" && v.d.n(3) > 0 {
			_, err := v.door.blobs.DeleteBlob(context.WithoutCancel(v.w.ctx), content_, object, nil)
			return "blob " + object + " is missing" + refusal(err)
		}
		if list, _ := d.fields["list"].(string); list != "" && v.d.n(3) > 0 {
			_, err := v.door.blobs.DeleteBlob(context.WithoutCancel(v.w.ctx), exchange_, list, nil)
			how := "blob " + list + " is missing" + refusal(err)
			switch v.d.n(4) {
			case 0:
				how += ", and " + v.removes(page)
			case 1:
				d.fields["count"] = v.miscounted(d.fields["count"])
				how += ", and " + v.put(&d, "has another count")
			case 2:
				how += ", and " + v.repages(page)
			}
			return how
		}
		return "bundle " + d.id + " is missing" + refusal(v.door.remove(context.WithoutCancel(v.w.ctx), d))
	}
	return "finds no open bundle"
}
