package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/spf13/cobra/doc"
)

var date = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var entries = []archiveEntry{{"man/man1/messagehub.1", 0o644, []byte("page")}, {"messagehub", 0o755, []byte("program")}}

func TestArchives_AreTheSameBytesEachTime(t *testing.T) {
	for name, write := range map[string]func(io.Writer, string, []archiveEntry, time.Time) error{"tar": writeTar, "zip": writeZip} {
		var first, second bytes.Buffer
		for _, b := range []*bytes.Buffer{&first, &second} {
			if err := write(b, "messagehub_1", entries, date); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("two archives of %s differ", name)
		}
	}
}

func TestArchives_KeepModesAndTimes(t *testing.T) {
	var b bytes.Buffer
	if err := writeTar(&b, "messagehub_1", entries, date); err != nil {
		t.Fatal(err)
	}
	uncompressed, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(uncompressed)
	for _, want := range entries {
		h, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != "messagehub_1/"+want.name || h.Mode != want.mode || !h.ModTime.Equal(date) || h.Uid != 0 {
			t.Errorf("got %+v", h)
		}
	}
	b.Reset()
	if err := writeZip(&b, "messagehub_1", entries, date); err != nil {
		t.Fatal(err)
	}
	zipped, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if f := zipped.File[1]; f.Name != "messagehub_1/messagehub" || f.Mode().Perm() != 0o755 || !f.Modified.Equal(date) {
		t.Errorf("got %+v", f.FileHeader)
	}
}

func TestManPages_CoverEveryCommandWithItsFlags(t *testing.T) {
	const described = `{"use": "messagehub", "short": "A hub", "commands": [
		{"use": "serve", "short": "Run the hub", "long": "Run the hub.\n\nFor long.", "example": "  messagehub serve",
		 "flags": [{"name": "listen", "type": "string", "usage": "address, as ` + "`HOST:PORT`" + `", "default": "127.0.0.1:8080"}]},
		{"use": "emulator", "short": "Engines", "commands": [{"use": "cosmos", "short": "An account"}]}]}`
	pages, err := manPages([]byte(described), &doc.GenManHeader{Section: "1", Date: &date})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"messagehub.1", "messagehub-serve.1", "messagehub-emulator.1", "messagehub-emulator-cosmos.1"} {
		if len(pages[name]) == 0 {
			t.Errorf("no page %s", name)
		}
	}
	if len(pages) != 4 {
		t.Errorf("got %d pages", len(pages))
	}
	for _, want := range []string{"Mar 2026", "--listen", "127.0.0.1:8080", "For long.", "messagehub(1)"} {
		if !strings.Contains(string(pages["messagehub-serve.1"]), want) {
			t.Errorf("the page lacks %q:\n%s", want, pages["messagehub-serve.1"])
		}
	}
	for _, wrong := range []string{"", "{", `{"use": "x", "flags": [{"name": "a"}, {"name": "a"}]}`} {
		if _, err := manPages([]byte(wrong), &doc.GenManHeader{Section: "1", Date: &date}); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestMaterials_AreTheModulesOfTheBinary(t *testing.T) {
	r := release{out: t.TempDir(), stamps: stamps{version: "v1.2.3", revision: "abc", date: date}}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.listMaterials(target{"linux", "amd64"}, binary); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.out, "messagehub_v1.2.3_linux_amd64.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(*bom.Components), len(info.Deps)+1; got != want {
		t.Errorf("%d components, want %d", got, want)
	}
	if bom.Metadata.Timestamp != "2026-03-01T12:00:00Z" || !json.Valid(text) {
		t.Errorf("got %s", text[:200])
	}
	if got := serialNumber(sha256.Sum256([]byte("x"))); len(got) != len("urn:uuid:00000000-0000-0000-0000-000000000000") || got[23] != '8' {
		t.Errorf("got %s", got)
	}
}

func TestPackageVersion_BeginsWithADigit(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-4-gabcdef0-dirty": "1.2.3.4.gabcdef0.dirty", "a73968c8-dirty": "0.0.0+a73968c8.dirty",
		"12345678": "0.0.0+12345678", "1234567f-dirty": "0.0.0+1234567f.dirty", "dev": "0.0.0+dev",
	} {
		if got := packageVersion(version); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}

func TestRun_RefusesAWrongCommandLine(t *testing.T) {
	for _, args := range [][]string{nil, {"-out", "x"}, {"-out", "x", "-version", "v", "-revision", "r", "-date", "today"}, {"-out", "x", "-version", "v", "-revision", "r", "-date", "2026-03-01T12:00:00Z", "now"}} {
		if err := runRelease(t.Context(), args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
