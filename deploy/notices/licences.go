package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A licence is a file with the text of licences, or with a notice.
type licence struct {
	names    []string // SPDX identifiers of the licences in the file
	isNotice bool     // the file is a notice, which must accompany a licence
	text     string
}

// readLicences reads the licences of modules. Its error names each module without a licence, and
// each licence without a known name.
func readLicences(modules []*module) error {
	var faults []error
	for _, m := range modules {
		for _, file := range licenceFiles(m) {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			l := licence{namesOf(string(text)), isNotice(filepath.Base(file)), strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))}
			if !l.isNotice && len(l.names) == 0 {
				faults = append(faults, fmt.Errorf("%s: the licence in %s has no known name: look at it, and add it to deploy/notices/licences.go if the command may link it", m.path, file))
			}
			if !slices.ContainsFunc(m.licences, func(known licence) bool { return known.text == l.text }) {
				m.licences = append(m.licences, l)
			}
		}
		if !slices.ContainsFunc(m.licences, func(l licence) bool { return !l.isNotice }) {
			faults = append(faults, fmt.Errorf("%s has no licence: it may not be linked", m.path))
		}
	}
	return errors.Join(faults...)
}

// licenceFiles returns the files with licences in the folders of the linked packages of a module,
// and in the folders above them.
func licenceFiles(m *module) (files []string) {
	var seen []string
	for _, folder := range m.folders {
		for strings.HasPrefix(folder, m.root) && !slices.Contains(seen, folder) {
			seen = append(seen, folder)
			entries, _ := os.ReadDir(folder) // a folder that cannot be read has no licences
			for _, entry := range entries {
				if !entry.IsDir() && isLicence(entry.Name()) {
					files = append(files, filepath.Join(folder, entry.Name()))
				}
			}
			folder = filepath.Dir(folder)
		}
	}
	slices.Sort(files)
	return files
}

func isLicence(name string) bool {
	name = strings.ToLower(name)
	if ext := filepath.Ext(name); ext == ".go" || ext == ".html" {
		return false
	}
	for _, beginning := range []string{"license", "licence", "copying", "notice", "patents"} {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// isNotice reports whether a file with this name accompanies a licence.
func isNotice(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "notice") || strings.HasPrefix(name, "patents")
}

// namesOf returns the SPDX identifiers of the licences in a text.
func namesOf(text string) (names []string) {
	text = strings.Join(strings.Fields(text), " ")
	has := func(part string) bool { return strings.Contains(text, part) }
	if has("Apache License Version 2.0") || has("apache.org/licenses/LICENSE-2.0") {
		names = append(names, "Apache-2.0")
	}
	if has("Mozilla Public License Version 2.0") {
		names = append(names, "MPL-2.0")
	}
	if has("Permission is hereby granted, free of charge") {
		names = append(names, "MIT")
	}
	switch isBSD := has("Redistribution and use in source and binary forms"); {
	case isBSD && (has("Neither the name") || has("may not be used to endorse")):
		names = append(names, "BSD-3-Clause")
	case isBSD:
		names = append(names, "BSD-2-Clause")
	}
	if has("Permission to use, copy, modify, and/or distribute") || has("Permission to use, copy, modify, and distribute") {
		names = append(names, "ISC")
	}
	return names
}
