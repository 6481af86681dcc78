// Package modelfile is the format of the embedded model: a name, the pieces of
// a vocabulary, and named matrices of float32 or of 8-bit blocks.
//
// All numbers are little-endian; a string is a length of two bytes and its
// bytes.
//
//	magic     8 bytes "SATCHENC"
//	version   uint32, 1
//	name      string
//	pieces    uint32 count, then for each: string text, float32 score
//	matrices  uint32 count, then for each:
//	          string name, uint8 kind, uint32 rows, uint32 columns, values
//	checksum  uint32, CRC-32C of everything before it
//
// Values of kind 0 are float32, row by row. Values of kind 1 are blocks of 32
// along the row, as in the Q8_0 type of GGML: first all scales, each the upper
// half of a float32 (bfloat16), then all int8; value = int8 × its block's
// scale.
package modelfile
