// Package disktest is a disk that fails, for tests of what stands on package disk. It
// works on Linux, which has devices that are full and devices that do not sync.
package disktest
