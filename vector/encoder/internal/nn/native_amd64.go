package nn

// native are the functions in assembly, by the name of the kernel whose
// instructions they use.
var native = map[string]Functions{
	"avx512": {softmax16, gelu16},
	"avx2":   {softmax8, gelu8},
}
