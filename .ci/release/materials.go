package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// listMaterials writes the software bill of materials of a binary, in the
// format of CycloneDX, from the modules that the go command has recorded in it.
func (r *release) listMaterials(t target, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	bom := cdx.NewBOM()
	bom.SerialNumber = serialNumber(sum)
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.date.UTC().Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "messagehub", Type: cdx.ComponentTypeApplication, Name: "messagehub", Version: r.version,
			PackageURL: "pkg:golang/" + info.Main.Path + "@" + r.version + "?goos=" + t.os + "&goarch=" + t.arch,
			Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
			Properties: &[]cdx.Property{{Name: "commit", Value: r.revision}},
		},
	}
	components := []cdx.Component{{
		BOMRef: "std", Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, PackageURL: "pkg:golang/std@" + info.GoVersion[2:],
	}}
	for _, m := range info.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		components = append(components, cdx.Component{
			BOMRef: m.Path, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: "pkg:golang/" + m.Path + "@" + m.Version,
			Properties: &[]cdx.Property{{Name: "go.sum", Value: m.Sum}},
		})
	}
	bom.Components = &components
	file, err := os.Create(r.resultPath(t, ".cdx.json"))
	if err != nil {
		return err
	}
	encoder := cdx.NewBOMEncoder(file, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	return errors.Join(encoder.Encode(bom), file.Close())
}

// serialNumber derives a UUID from a digest.
func serialNumber(sum [sha256.Size]byte) string {
	sum[6] = sum[6]&0x0f | 0x80 // version 8: custom bits
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
