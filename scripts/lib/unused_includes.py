"""Finds headers of the standard library that a source includes and does not use: unused_includes.py [--fix] FILE...

A header counts as used if the source has one of its names after std::. Headers that are not in the table are passed over, and so
is an include with a comment, which says why it is there. --fix removes the lines; clang-format closes the
gaps that it leaves.
"""

import re
import sys
from pathlib import Path

# For each header, a pattern of the names for which it is included.
NAMES = {
    "algorithm": r"\w*sort\w*|(stable_)?partition\w*|find\w*|(any|all|none)_of|(min|max|minmax)\w*|clamp|copy\w*|move_backward|fill\w*|"
                 r"count\w*|transform|remove\w*|reverse\w*|equal\w*|(lower|upper)_bound|binary_search|unique\w*|rotate\w*|generate\w*|"
                 r"for_each\w*|mismatch|search\w*|nth_element|swap_ranges|is_sorted\w*|is_permutation|replace\w*|\w*merge|includes|set_\w+|"
                 r"(push|pop|make|sort|is)_heap|lexicographical_compare|adjacent_find|shuffle|(next|prev)_permutation|sample|ranges::\w+",
    "array": r"array|to_array",
    "atomic": r"atomic\w*|memory_order\w*",
    "chrono": r"chrono",
    "condition_variable": r"condition_variable\w*|cv_status",
    "deque": r"deque",
    "filesystem": r"filesystem",
    "fstream": r"[io]?fstream|filebuf",
    "functional": r"function|bind\w*|c?ref|less\w*|greater\w*|hash|plus|minus|multiplies|divides|invoke|equal_to|not_fn|logical_\w+|"
                  r"reference_wrapper|identity|mem_fn|placeholders",
    "iostream": r"cout|cerr|clog|cin",
    "limits": r"numeric_limits",
    "list": r"list",
    "map": r"(multi)?map",
    "memory": r"\w+_ptr|make_(unique|shared)\w*|allocate_shared|enable_shared_from_this|\w*allocator\w*|addressof|destroy\w*|construct_at|"
              r"default_delete|\w+_pointer_cast|align|assume_aligned|uninitialized_\w+",
    "mutex": r"\w*mutex|\w+_lock|lock_guard|lock|once_flag|call_once",
    "numeric": r"accumulate|iota|reduce|inner_product|partial_sum|gcd|lcm|midpoint|transform_reduce|\w+_scan|adjacent_difference",
    "optional": r"optional|nullopt\w*|make_optional",
    "queue": r"(priority_)?queue",
    "set": r"(multi)?set",
    "span": r"span|as_(writable_)?bytes|dynamic_extent",
    "sstream": r"\w*stringstream|stringbuf",
    "string": r"\w*string|to_string|sto\w+|getline|char_traits|string_literals",
    "string_view": r"\w*string_view|string_view_literals",
    "thread": r"j?thread|this_thread",
    "tuple": r"tuple\w*|tie|make_tuple|get|apply|ignore|forward_as_tuple",
    "unordered_map": r"unordered_(multi)?map",
    "unordered_set": r"unordered_(multi)?set",
    "utility": r"move\w*|pair|forward|exchange|swap|make_pair|declval|\w*_sequence\w*|in_place\w*|piecewise_construct\w*|as_const|unreachable|"
               r"get|cmp_\w+|in_range|to_underlying|tuple_(size|element)\w*",
    "variant": r"variant\w*|visit|get\w*|holds_alternative|monostate|in_place\w*",
    "vector": r"vector",
}
INCLUDE = re.compile(r"^#include <(\w+)>\n", re.MULTILINE)
USED = {header: re.compile(rf"\bstd::({names})\b") for header, names in NAMES.items()}


def unused(text):
    code = re.sub(r"//.*", "", text)
    return [header for header in INCLUDE.findall(text) if header in USED and not USED[header].search(code)]


def main():
    fix = sys.argv[1:2] == ["--fix"]
    found = 0
    for name in sys.argv[1 + fix:]:
        path = Path(name)
        text = path.read_text()
        for header in unused(text):
            found += 1
            print(f"{name}: includes <{header}> and does not use it")
            text = text.replace(f"#include <{header}>\n", "", 1)
        if fix:
            path.write_text(text)
    sys.exit(found > 0 and not fix)


if __name__ == "__main__":
    main()
