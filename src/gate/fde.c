// SPDX-License-Identifier: Apache-2.0
/*
 * Function bounds from .eh_frame_hdr and .eh_frame: see fde.h.
 */
#include "gate/fde.h"

#include "base/base.h"
#include "gate/bytes.h"

#define PE_ABSPTR 0x00
#define PE_4_BYTES 0x03
#define PE_8_BYTES 0x04
#define PE_SIZE_MASK 0x07 /* udata and sdata of a size differ in bit 3 only */
#define PE_UNKNOWN 0xff

void wf_fde_find(const struct dl_phdr_info *module, struct wf_fde_table *out)
{
	*out = (struct wf_fde_table){ .nr = 0 };
	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];
		const uint8_t *hdr = (const uint8_t *)(module->dlpi_addr + ph->p_vaddr);
		size_t nr;

		if (ph->p_type != PT_GNU_EH_FRAME || ph->p_memsz < 12)
			continue;
		/* version 1, pointer of 4 bytes, count udata4, table of datarel sdata4 */
		if (hdr[0] != 1 || (hdr[1] & 0x0f) != 0x0b || hdr[2] != 0x03 || hdr[3] != 0x3b)
			return;
		nr = (uint32_t)load32(hdr + 8);
		if (12 + nr * sizeof(*out->entries) > ph->p_memsz)
			return;
		*out = (struct wf_fde_table){ hdr, (const struct wf_fde_entry *)(hdr + 12), nr };
		return;
	}
}

const uint8_t *wf_fde_start(const struct wf_fde_table *t, size_t i)
{
	return i < t->nr ? t->hdr + t->entries[i].start : (const uint8_t *)UINTPTR_MAX;
}

size_t wf_fde_at(const struct wf_fde_table *t, uintptr_t addr)
{
	size_t lo = 0;
	size_t hi = t->nr;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if ((uintptr_t)wf_fde_start(t, mid) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : t->nr;
}

static const uint8_t *skip_leb128(const uint8_t *at)
{
	while (*at++ & 0x80)
		;
	return at;
}

static size_t encoded_size(uint8_t enc)
{
	if ((enc & PE_SIZE_MASK) == PE_4_BYTES)
		return 4;
	return (enc & PE_SIZE_MASK) == PE_8_BYTES || (enc & PE_SIZE_MASK) == PE_ABSPTR ? 8 : 2;
}

/* The encoding of addresses in the FDEs of a CIE; is it of a signal return? */
static uint8_t cie_encoding(const uint8_t *cie, bool *out_is_signal)
{
	const uint8_t *aug = cie + 9;
	const uint8_t *data = aug;
	uint8_t enc = PE_ABSPTR;

	*out_is_signal = false;
	if (cie[8] != 1 || (*aug && *aug != 'z'))
		return PE_UNKNOWN;
	while (*data)
		*out_is_signal |= *data++ == 'S';
	if (!*aug)
		return enc;
	data = skip_leb128(skip_leb128(data + 1)); /* code and data alignment */
	data = skip_leb128(data + 1);              /* the return register; length of the rest */
	for (aug++; *aug; aug++) {
		if (*aug == 'R')
			enc = *data++;
		else if (*aug == 'P')
			data += 1 + encoded_size(*data);
		else if (*aug == 'L')
			data++;
		else if (*aug != 'S' && *aug != 'B')
			return PE_UNKNOWN;
	}
	return enc;
}

void wf_fde_bounds(const struct wf_fde_table *t, size_t i, const uint8_t **out_start,
		   const uint8_t **out_end)
{
	const uint8_t *start = wf_fde_start(t, i);
	const uint8_t *fde = t->hdr + t->entries[i].fde;
	bool is_signal;
	uint8_t enc = cie_encoding(fde + 4 - load32(fde + 4), &is_signal);

	*out_end = start;
	if (enc != PE_UNKNOWN && encoded_size(enc) == 4)
		*out_end = start + (uint32_t)load32(fde + 12);
	else if (enc != PE_UNKNOWN && encoded_size(enc) == 8)
		*out_end = start + load64(fde + 16);
	/* A signal return is looked up by the address before it, so its FDE begins a byte early. */
	*out_start = start + is_signal;
}
