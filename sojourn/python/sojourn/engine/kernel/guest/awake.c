/* Preloaded under tc in a guest: puts red's `adaptive` where the kernel looks for it before it starts its timer (awake.py).
 *
 * tc sends the flags of red in TCA_RED_FLAGS; __red_change (Linux 6.12) starts the timer by those of tc_red_qopt, the older
 * place. This copies them there, and gives the newer attribute a type that the kernel passes over.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#define UNKNOWN_TYPE 100

static int type_of(const struct rtattr *attribute) { return attribute->rta_type & NLA_TYPE_MASK; }

static void move_flags(struct rtattr *options) {
    int left = RTA_PAYLOAD(options);
    struct tc_red_qopt *older = NULL;
    struct rtattr *newer = NULL;
    for (struct rtattr *each = RTA_DATA(options); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
        if (type_of(each) == TCA_RED_PARMS) older = RTA_DATA(each);
        if (type_of(each) == TCA_RED_FLAGS) newer = each;
    }
    if (older && newer) {
        struct nla_bitfield32 given;
        memcpy(&given, RTA_DATA(newer), sizeof given);
        older->flags = given.value;
        newer->rta_type = UNKNOWN_TYPE;
    }
}

static void look_at(struct nlmsghdr *message, size_t size) {
    if (size < NLMSG_LENGTH(sizeof(struct tcmsg)) || message->nlmsg_type != RTM_NEWQDISC) return;
    struct tcmsg *about = NLMSG_DATA(message);
    int left = message->nlmsg_len - NLMSG_LENGTH(sizeof *about), red = 0;
    for (struct rtattr *each = TCA_RTA(about); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
        if (type_of(each) == TCA_KIND) red = !strcmp(RTA_DATA(each), "red");
        if (type_of(each) == TCA_OPTIONS && red) move_flags(each);
    }
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    ssize_t (*theirs)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");
    for (size_t part = 0; part < message->msg_iovlen; part++)
        look_at(message->msg_iov[part].iov_base, message->msg_iov[part].iov_len);
    return theirs(socket, message, flags);
}
